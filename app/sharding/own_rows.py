"""The rows of this shard, and which of them all other shards know."""

from collections.abc import Callable, Iterable, Sequence

from holdfast.cluster.agreement import Agreements
from holdfast.cluster.frames import Facts
from holdfast.cluster.rows import STANDS

Done = Callable[[bool], None]


class OwnRows:
    """Counts why rows stand, and tells the other shards which of them do.

    What has changed is told at the end of the turn, for all subscribes in one frame.

    Args:
        tell: Tells facts to others without waiting.
        wake: Lets the turn end with `flush`.
    """

    def __init__(
        self, agreements: Agreements, tell: Callable[[Facts], None], wake: Callable[[], None]
    ) -> None:
        self._agreements = agreements
        self._tell = tell
        self._wake = wake
        # How often each row was added; those that stand otherwise than others were told.
        self._counts: dict[str, int] = {}
        self._untold: set[str] = set()
        # By row, something that is replaced whenever the others are told that it does not stand.
        self._rounds: dict[str, object] = {}
        # The rows that all others know.
        self._known: set[str] = set()
        # Who waits until which rows are known.
        self._asked: list[tuple[Sequence[str], Done]] = []

    def add(self, row: str) -> None:
        """Let a row stand, for one more reason."""
        count = self._counts[row] = self._counts.get(row, 0) + 1
        if count == 1:
            self._change(row)
        self._rounds.setdefault(row, object())

    def remove(self, row: str) -> None:
        """Take back one `add`."""
        if self._counts[row] > 1:
            self._counts[row] -= 1
        else:
            del self._counts[row]
            self._change(row)

    def _change(self, row: str) -> None:
        # Of a change that the next one reverts, others have not heard.
        self._untold ^= {row}
        self._wake()

    def when_known(self, rows: Sequence[str], done: Done) -> None:
        """Call `done` once all others know these rows, or cannot within 5 s."""
        missing = [each for each in rows if each not in self._known]
        if not missing:
            done(True)
            return
        self._asked.append((missing, done))
        self._wake()

    def flush(self, now: float) -> None:
        """Tell the others what has changed, and ask whether they know."""
        if not (self._asked or self._untold):
            return
        asked, self._asked = self._asked, []
        untold, self._untold = sorted(self._untold), set()
        gone = [each for each in untold if each not in self._counts]
        if gone:
            for row in gone:
                self._known.discard(row)
                self._rounds.pop(row, None)
            self._tell(dict.fromkeys(gone, ""))
        wanted = [row for rows, _ in asked for row in rows]
        standing = {row: STANDS for row in (*untold, *wanted) if row in self._counts}
        if asked:
            self._ask([done for _, done in asked], standing, now)
        elif standing:
            self._tell(standing)

    def _ask(self, asked: Sequence[Done], standing: Facts, now: float) -> None:
        if not standing:
            # The subscriptions have ended meanwhile.
            for done in asked:
                done(True)
            return
        rounds = {row: self._rounds.get(row) for row in standing}

        def heard(is_known: bool) -> None:
            if is_known:
                same = [row for row, each in rounds.items() if self._rounds.get(row) is each]
                self._known.update(same)
            for done in asked:
                done(is_known)

        self._agreements.agree(standing, now, heard)

    def begin(self, stored: Iterable[str], now: float) -> None:
        """Tell the others all rows after the start, and which in the store stand no more."""
        gone = {row: value for row, value in self.corrections(stored).items() if not value}
        if self._counts:
            self._ask((), dict.fromkeys(self._counts, STANDS), now)
        # Behind the others: it may be that nothing had been told.
        if gone:
            self._tell(gone)

    def corrections(self, stored: Iterable[str]) -> Facts:
        """Return what makes the rows of a store those that stand. They are told as well."""
        self._untold.clear()
        gone = dict.fromkeys([each for each in stored if each not in self._counts], "")
        return {**dict.fromkeys(self._counts, STANDS), **gone}
