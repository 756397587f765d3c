"""The durable subscriptions of this shard, and which of them all other shards know."""

from collections.abc import Callable, Iterable, Sequence

from holdfast.cluster.agreement import Agreements
from holdfast.cluster.facts import OwnInterest
from holdfast.cluster.frames import Facts

Done = Callable[[bool], None]


class _Asked:
    """Who waits until these patterns are known."""

    __slots__ = ("done", "patterns")

    def __init__(self, patterns: Sequence[str], done: Done) -> None:
        self.patterns = patterns
        self.done = done


class DurableInterest:
    """Counts durable subscriptions, and tells the other shards which patterns have some.

    What has changed is told at the end of the turn, for all subscribes in one frame.

    Args:
        state: Tells facts to others without waiting.
        wake: Lets the turn end with `flush`.
    """

    def __init__(
        self, agreements: Agreements, state: Callable[[Facts], None], wake: Callable[[], None]
    ) -> None:
        self._agreements = agreements
        self._state = state
        self._wake = wake
        self._own = OwnInterest()
        # Changes that others have not been told, by the names of the facts.
        self._untold: dict[str, str] = {}
        # By pattern, something that is replaced whenever the others are told that it has none.
        self._rounds: dict[str, object] = {}
        # The patterns that all others know.
        self._known: set[str] = set()
        self._asked: list[_Asked] = []

    def add(self, pattern: str) -> None:
        """Count a subscription."""
        self._change(self._own.add(pattern))
        self._rounds.setdefault(pattern, object())

    def remove(self, pattern: str) -> None:
        """Count a subscription no more."""
        self._change(self._own.remove(pattern))

    def _change(self, facts: Facts) -> None:
        for name, value in facts.items():
            if name in self._untold and self._untold[name] != value:
                # Others have not heard of the change that this one reverts.
                del self._untold[name]
            else:
                self._untold[name] = value
            self._wake()

    def when_known(self, patterns: Sequence[str], done: Done) -> None:
        """Call `done` once all others know of these patterns, or cannot within 5 s."""
        missing = [each for each in patterns if each not in self._known]
        if not missing:
            done(True)
            return
        self._asked.append(_Asked(missing, done))
        self._wake()

    def flush(self, now: float) -> None:
        """Tell the others what has changed, and ask whether they know."""
        if not (self._asked or self._untold):
            return
        asked, self._asked = self._asked, []
        wanted = {pattern for each in asked for pattern in each.patterns}
        holding = {name: value for name, value in self._untold.items() if value}
        holding |= self._own.facts_of(wanted)
        gone = [name for name in self._untold if name not in holding]
        self._untold = {}
        if gone:
            for pattern in self._own.patterns_of(gone):
                self._known.discard(pattern)
                self._rounds.pop(pattern, None)
            self._state(dict.fromkeys(gone, ""))
        if asked:
            self._ask(asked, holding, now)
        elif holding:
            self._state(holding)

    def _ask(self, asked: Sequence[_Asked], holding: Facts, now: float) -> None:
        if not holding:
            # The subscriptions have ended meanwhile.
            for each in asked:
                each.done(True)
            return
        patterns = self._own.patterns_of(holding)
        rounds = {pattern: self._rounds.get(pattern) for pattern in patterns}

        def heard(is_known: bool) -> None:
            if is_known:
                same = [each for each in patterns if self._rounds.get(each) is rounds[each]]
                self._known.update(same)
            for each in asked:
                each.done(is_known)

        self._agreements.agree(holding, now, heard)

    def begin(self, stored: Iterable[str], now: float) -> None:
        """Tell the others everything after the start, and what in the store holds no more."""
        corrections = self._own.corrections(stored)
        gone = {name: value for name, value in corrections.items() if not value}
        self._untold = {}
        holding = self._own.facts()
        if holding:
            self._ask((), holding, now)
        # Behind the others: it may be that nothing had been told.
        if gone:
            self._state(gone)

    def corrections(self, stored: Iterable[str]) -> Facts:
        """Return what corrects the facts of a store that went back. They are told as well."""
        self._untold = {}
        return self._own.corrections(stored)
