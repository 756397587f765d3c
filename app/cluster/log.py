"""Writes the log of this shard: what it has for others, in the order of its turns.

The log does no I/O: it makes frames, and its port passes them to the store. Frames with durable
messages are appended by the script that stores these. Passing entries leave at the end of each
turn, and no one waits for them. Messages among them that the store does not take in time go over
links instead.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from holdfast.cluster.frames import Behind, Facts, LogEntry, Seen, split, write
from holdfast.cluster.places import NOWHERE, Place
from holdfast.cluster.trimming import KEEP_S
from holdfast.delivery.basics.ignoring import ignore

# How long passing entries wait for the store, and how many bytes of them.
_WAIT_S: Final = 5.0
_MOST_WAITING: Final = 8 * 1024 * 1024
# How often the places of this shard in other logs are told while they change: if others wait for
# them, and otherwise.
_TELL_AWAITED_S: Final = 0.05
_TELL_S: Final = 1.0
# When they are told once more if nothing has changed: until then, others keep the last seconds of
# what was taken, because the store of this shard may lose that.
_TELL_AGAIN_S: Final = KEEP_S + 2.0
# The name of the part of a frame that all shards read; a part for one shard has its number.
_FOR_ALL: Final = "all"
_NO_FACTS: Final[Facts] = {}
_NOTHING_SEEN: Final[Seen] = {}
_NOTHING_BEFORE: Final[Behind] = {}

Parts = Mapping[str, bytes]


class ForShard(NamedTuple):
    """An entry, and the shard that it is for; None for all shards."""

    entry: LogEntry
    shard: int | None = None


class LogPort(Protocol):
    """Appends frames to the log in the order of the calls, each once or not at all."""

    @property
    def is_available(self) -> bool:
        """Whether the store takes calls now."""
        ...

    def append(self, count: int, parts: Parts, done: Callable[[bool], None]) -> None:
        """Append a frame of so many entries. `done` hears whether the log has it."""
        ...

    def append_facts(
        self, facts: Facts, parts: Parts, done: Callable[[Place | None], None]
    ) -> None:
        """Append a frame of facts and places, and store the facts. A full store does so, too.

        `done` gets the place behind the frame, or a later one; None if the log does not have it.
        """
        ...


class PassingPort(Protocol):
    """The links, over which messages that are not stored go instead of the log."""

    def behind(self) -> Behind:
        """Return what the others must have got before frames with messages."""
        ...

    def logged(self, entries: Sequence[LogEntry]) -> None:
        """Take note that the log has these messages."""
        ...

    def give_up(self, entries: Sequence[LogEntry]) -> int:
        """Send messages that the log does not get in time. Returns how many of them are lost."""
        ...


class _Unanswered:
    """Passing entries that the store was asked to take."""

    __slots__ = ("count", "entries", "since")

    def __init__(self, since: float, entries: Sequence[ForShard]) -> None:
        self.since = since
        self.count = len(entries)
        # Those that have not gone over links. The log may get all of them all the same.
        self.entries = entries


def parts_of(
    entries: Sequence[ForShard],
    facts: Facts = _NO_FACTS,
    seen: Seen = _NOTHING_SEEN,
    behind: Behind = _NOTHING_BEFORE,
) -> Parts:
    """Return a frame with these entries: its parts by the shard that reads them."""
    parts: dict[str, bytes] = {}
    for_all = [entry for entry, shard in entries if shard is None]
    if for_all or facts or seen:
        parts[_FOR_ALL] = write(for_all, facts, seen, behind)
    for shard in sorted({shard for _, shard in entries if shard is not None}):
        own, before = [entry for entry, its in entries if its == shard], _NOTHING_BEFORE
        if _FOR_ALL not in parts and str(shard) in behind:
            # A call comes behind the message of which it asks, which may have gone over a link.
            before = {str(shard): behind[str(shard)]}
        parts[str(shard)] = write(own, behind=before)
    return parts


def frames_of(
    entries: Sequence[ForShard],
    facts: Facts = _NO_FACTS,
    seen: Seen = _NOTHING_SEEN,
    behind: Behind = _NOTHING_BEFORE,
) -> Iterator[tuple[Sequence[ForShard], Parts]]:
    """Yield frames with these entries, each with its own.

    The first one also tells these places, the last one facts that are not stored.
    """
    are_for_all = all(shard is None for _, shard in entries)
    frames = [*split(entry for entry, _ in entries)]
    at = 0
    for number, part in enumerate(frames, 1):
        told = facts if number == len(frames) else _NO_FACTS
        own = entries[at : at + len(part)]
        if are_for_all:
            yield own, {_FOR_ALL: write(part, told, seen, behind)}
        else:
            yield own, parts_of(own, told, seen, behind)
        at += len(part)
        seen = _NOTHING_SEEN


class Log:
    """The log of this shard."""

    def __init__(self, port: LogPort) -> None:
        self._port = port
        # Passing entries of this turn, and those that wait for the store, with their times.
        self._turn: list[ForShard] = []
        self._waiting: deque[tuple[float, list[ForShard]]] = deque()
        self._bytes = 0
        # Those that the store has not answered, oldest first.
        self._unanswered: dict[int, _Unanswered] = {}
        self._appends = 0
        # Places of this shard in other logs that were told, and newer ones.
        self._told: dict[int, Place] = {}
        self._untold: dict[int, Place] = {}
        self._told_at = -_TELL_S
        # Whether the told places were told once more.
        self._is_told_again = False
        # Whether another shard waits for one of them.
        self._is_awaited = False
        # Until when the next frame with entries is likely to tell them.
        self._expects_until = 0.0
        # Returns what is told together with places, if there is any; whether that is due.
        self.news: Callable[[], Facts] | None = None
        self._has_news = False
        self.passing: PassingPort | None = None
        # The books: passing entries in the log, and dropped ones.
        self.appended = 0
        self.dropped = 0

    def pass_on(self, entry: LogEntry, shard: int | None = None) -> None:
        """Add a passing entry to the frame of this turn, for one shard or all."""
        self._turn.append(ForShard(entry, shard))

    def flush(self, now: float) -> None:
        """End the turn: append its entries, or keep them while the store is away."""
        if self._turn:
            turn, self._turn = self._turn, []
            self._bytes += _size(turn)
            self._waiting.append((now, turn))
        if self._port.is_available:
            while self._waiting:
                self._append(self._take_oldest(), now)
        else:
            self._limit(now)

    def _behind(self) -> Behind:
        return _NOTHING_BEFORE if self.passing is None else self.passing.behind()

    def _take_oldest(self) -> list[ForShard]:
        _, entries = self._waiting.popleft()
        self._bytes -= _size(entries)
        return entries

    def _append(self, entries: list[ForShard], now: float) -> None:
        is_due = now - self._told_at >= _TELL_AWAITED_S and bool(self._untold or self._has_news)
        seen, news = _NOTHING_SEEN, _NO_FACTS
        if is_due:
            self._told_at = now
            seen = self._take_untold()
            # What waits longer than these entries comes behind them.
            news = _NO_FACTS if self._waiting else self._take_news()
        for own, parts in frames_of(entries, news, seen, self._behind()):
            self._appends += 1
            self._unanswered[self._appends] = _Unanswered(now, own)
            appended = partial(self._appended, self._appends, seen, now)
            self._port.append(len(own), parts, appended)
            seen = _NOTHING_SEEN

    def _take_untold(self) -> Seen:
        """Return the places to tell; they count as told."""
        seen, self._untold = self._untold, {}
        self._is_awaited = False
        self._told |= seen
        return seen

    def _take_news(self) -> Facts:
        self._has_news = False
        return _NO_FACTS if self.news is None else self.news()

    def tell_news(self) -> None:
        """Let the log tell soon what is told together with places."""
        self._has_news = True

    def _appended(self, number: int, seen: Seen, now: float, is_there: bool) -> None:
        asked = self._unanswered.pop(number)
        if is_there:
            self._expects_until = now + _TELL_AWAITED_S
            self.appended += asked.count
            if self.passing is not None:
                self.passing.logged(_messages(asked.entries))
            return
        self._give_up(asked.entries)
        self._has_news = self.news is not None
        for shard, place in seen.items():
            if self._told.get(shard) == place:
                # A full store takes it in a frame without messages.
                del self._told[shard]
                self._untold.setdefault(shard, place)
                self._is_awaited = True

    def _limit(self, now: float) -> None:
        """Give up what has waited for too long, and what is too much."""
        while self._waiting:
            since, _ = self._waiting[0]
            if self._bytes <= _MOST_WAITING and now - since < _WAIT_S:
                return
            self._give_up(self._take_oldest())

    def _give_up(self, entries: Sequence[ForShard]) -> None:
        """Let messages go over links, and drop everything else."""
        messages = _messages(entries)
        self.dropped += len(entries) - len(messages)
        if messages:
            lost = len(messages) if self.passing is None else self.passing.give_up(messages)
            self.dropped += lost

    def _give_up_unanswered(self, now: float) -> None:
        """Let messages go over links that the store may take or not."""
        for asked in self._unanswered.values():
            if now - asked.since < _WAIT_S:
                return
            messages = _messages(asked.entries)
            if messages and self.passing is not None:
                asked.entries = [each for each in asked.entries if each.shard is not None]
                self.passing.give_up(messages)

    def see(self, shard: int, place: Place, awaited: Place = NOWHERE) -> None:
        """Note how far this shard has taken another one's log. The log tells that within a second.

        It tells it soon if the other shard may wait for a later place than it was told. A place is
        told only if there are entries or facts before it that were not there before. Otherwise two
        shards would tell each other forever that they have heard each other.
        """
        told = self._told.get(shard, NOWHERE)
        if (told.nonce, told.total) != (place.nonce, place.total):
            self._untold[shard], self._is_told_again = place, False
            self._is_awaited |= (told.fence, told.n) < (awaited.fence, awaited.n)

    @property
    def is_awaited(self) -> bool:
        """Whether others wait for what `tick` tells."""
        return self._is_awaited or self._has_news

    def tick(self, now: float) -> None:
        """Tell places that have changed, if it is time, and drop what has waited for too long.

        While messages are frequent, their frames tell them.
        """
        self._give_up_unanswered(now)
        self.flush(now)
        if not self._is_told_again and not self._untold and now - self._told_at >= _TELL_AGAIN_S:
            self._untold, self._is_told_again = {**self._told}, True
        pause_s = _TELL_AWAITED_S if self.is_awaited else _TELL_S
        is_due = now - self._told_at >= pause_s and now >= self._expects_until
        if (self._untold or self._has_news) and is_due and self._port.is_available:
            self._told_at = now
            self.state(_NO_FACTS, now, ignore)

    def state(self, facts: Facts, now: float, done: Callable[[Place | None], None]) -> None:
        """Append a frame with facts that have changed, behind everything so far.

        An empty value says that the fact holds no more. `done` gets a place behind the frame.
        """
        self.flush(now)
        seen, news = self._take_untold(), _NO_FACTS if self._waiting else self._take_news()
        told = {**facts, **news} if news else facts
        # Who knows a fact has everything that was published before.
        behind = self._behind() if facts else _NOTHING_BEFORE
        self._port.append_facts(facts, {_FOR_ALL: write((), told, seen, behind)}, done)

    def begin_again(self) -> None:
        """Tell all places again: this incarnation's log has none of them yet."""
        self._untold = self._told | self._untold
        self._told = {}
        self._is_awaited = True


def _size(entries: Sequence[ForShard]) -> int:
    return sum(entry.size for entry, _ in entries)


def _messages(entries: Sequence[ForShard]) -> Sequence[LogEntry]:
    return [entry for entry, shard in entries if shard is None]
