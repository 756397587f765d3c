"""Passes messages that are not stored on to other shards: over links, or by the log.

A link takes them to another process without a store. The log takes them if there is no link to
some shard for now, and as long as it has not answered for earlier ones of their channel. On a link,
messages say which place in the log their channel follows. What the store of this shard does not
take for the log in time goes over the links that there are, and soon over the others.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from holdfast.cluster.frames import Behind, LogEntry, split, write
from holdfast.cluster.log import Log
from holdfast.cluster.places import Place
from holdfast.sharding.early import Cause, Early
from holdfast.sharding.followed import Followed

# For how long what other shards have pruned is certain. They give up a link later.
_FRESH_S: Final = 1.0
# How long messages wait for a link that the log did not get, and how many bytes of them.
_LINK_S: Final = 5.0
_MOST_BYTES: Final = 8 * 1024 * 1024


class Passage(Protocol):
    """The link by which another shard gets messages."""

    @property
    def is_open(self) -> bool:
        """Whether it takes more now."""
        ...

    @property
    def pruned(self) -> Collection[str]:
        """The channels of which the other shard has no receivers, as far as it has said."""
        ...

    @property
    def sent(self) -> tuple[int, int]:
        """Its number, which no other one has, and how many frames it has taken.

        If it takes no more, these are the last ones: what it has taken may still arrive.
        """
        ...

    def send(self, frame: bytes, /) -> None:
        """Send a frame at the end of the turn."""
        ...


class _Late(NamedTuple):
    """Messages that the log did not get, and that wait for links."""

    entries: Sequence[LogEntry]
    # The shards that have not got them.
    shards: set[int]
    until: float
    size: int


class Passing:
    """Passes messages on, over links or by the log, in their order.

    Args:
        end: Returns the end of the log, as far as the store has answered.
        may_speak: Returns whether this process has the shard for certain.
    """

    def __init__(
        self,
        log: Log,
        followed: Followed,
        early: Early,
        *,
        end: Callable[[], Place],
        may_speak: Callable[[], bool],
    ) -> None:
        self._log = log
        self._followed = followed
        self._early = early
        self._end = end
        self._may_speak = may_speak
        # By number of the other shards. Without any, all messages take the log.
        self.passages: Mapping[int, Passage] = {}
        self._turn: list[LogEntry] = []
        # Its channels on which others need not wait once more.
        self._early_channels: set[str] = set()
        # By channel, how many messages the log has not got yet.
        self._in_log: Counter[str] = Counter()
        # What waits for links.
        self._late: deque[_Late] = deque()
        self._ticked_at = 0.0
        # The books: how many messages went over links.
        self.passed = 0

    def is_pruned(self, channel: str, now: float) -> bool:
        """Return whether a message of the channel would take the links, and no shard wants it.

        A process that was frozen may have lost links without knowing it.
        """
        if channel in self._in_log or now - self._ticked_at > _FRESH_S:
            return False
        for passage in self.passages.values():
            if channel not in passage.pruned or not passage.is_open:
                return False
        return bool(self.passages) and self._may_speak()

    def add(self, entry: LogEntry, *, is_early: bool = False) -> None:
        """Pass a message on at the end of this turn. An early one has waited for others here."""
        self._turn.append(entry)
        if is_early:
            self._early_channels.add(entry.channel)
            self._early.count(Cause.OWN_LOG, 1)

    def add_to_log(self, entry: LogEntry) -> None:
        """Pass a message on by the log, whether there are links or not."""
        self._in_log[entry.channel] += 1
        self._log.pass_on(entry)

    def tick(self, now: float) -> None:
        """End the turn, several times a second."""
        self._ticked_at = now
        self._send_late()
        self.flush()

    def flush(self) -> None:
        """End the turn. Messages that take the log are in it before anything that follows."""
        if not self._turn:
            return
        turn, self._turn = self._turn, []
        early, self._early_channels = self._early_channels, set()
        for channel in early:
            # What it has there is among these, or has waited long enough.
            self._in_log.pop(channel, None)
        if not self._has_links():
            direct: Sequence[LogEntry] = ()
        elif self._in_log:
            direct = [each for each in turn if each.channel not in self._in_log]
        else:
            direct = turn
        if len(direct) < len(turn):
            for entry in turn:
                if entry.channel in self._in_log or not direct:
                    self.add_to_log(entry)
        if direct:
            if self._late:
                self._send_late()
            self.passed += self._send(direct, self.passages.values(), early)

    def _has_links(self) -> bool:
        """Return whether there are links to all shards now."""
        passages = self.passages
        return (
            bool(passages) and all(each.is_open for each in passages.values()) and self._may_speak()
        )

    def _send(
        self, turn: Sequence[LogEntry], passages: Iterable[Passage], early: Collection[str]
    ) -> int:
        """Send messages over open links. Returns how many some shard wants."""
        most = 0
        # The frames with all entries, which most shards get.
        whole: Sequence[bytes] = ()
        for passage in passages:
            entries, pruned = turn, passage.pruned
            if pruned:
                entries = [each for each in turn if each.channel not in pruned]
                if not entries:
                    continue
            if len(entries) < len(turn):
                frames: Sequence[bytes] = self._frames(entries, early)
            else:
                frames = whole = whole or self._frames(entries, early)
            for frame in frames:
                passage.send(frame)
            most = max(most, len(entries))
        return most

    def _frames(self, entries: Sequence[LogEntry], early: Collection[str]) -> Sequence[bytes]:
        of = self._followed.of
        if self._followed.is_empty:
            return [write(part) for part in split(entries)]
        frames = []
        for part in split(entries):
            channels = {each.channel for each in part}
            frames.append(write(part, behind=of(channels.difference(early) if early else channels)))
        return frames

    # The log

    def behind(self) -> Behind:
        """Return how far others must have taken what went over links."""
        found: dict[str, str] = {}
        for shard, passage in self.passages.items():
            number, count = passage.sent
            if count:
                found[str(shard)] = f"{number} {count}"
        return found

    def logged(self, entries: Sequence[LogEntry]) -> None:
        """Take note that the log has these messages now."""
        self._followed.put(self._leave_log(entries), self._end())

    def give_up(self, entries: Sequence[LogEntry]) -> int:
        """Send messages on links that the log does not get in time. Returns how many are lost."""
        self._leave_log(entries)
        passages = self.passages
        size = sum(each.size for each in entries)
        waiting = sum(each.size for each in self._late)
        if not passages or not self._may_speak() or waiting + size > _MOST_BYTES:
            return len(entries)
        self._early.count(Cause.OWN_LOG, len(entries))
        self._late.append(_Late(entries, {*passages}, self._ticked_at + _LINK_S, size))
        self._send_late()
        return 0

    def _send_late(self) -> None:
        """Send what the log did not get on links that are open, and drop what has waited long."""
        if not self._late:
            return
        late, self._late = self._late, deque()
        # After a time in which this process did not run, neither may hold.
        may_speak = self._may_speak()
        for each in late:
            may_send = may_speak and self._ticked_at < each.until
            for shard in [*each.shards] if may_send else ():
                passage = self.passages.get(shard)
                if passage is not None and passage.is_open:
                    each.shards.discard(shard)
                    self._send(each.entries, (passage,), {one.channel for one in each.entries})
            if each.shards and self._ticked_at < each.until:
                self._late.append(each)
            elif each.shards:
                self._log.dropped += len(each.entries)

    def _leave_log(self, entries: Sequence[LogEntry]) -> Collection[str]:
        """Take note that messages do not wait for the log any more. Returns their channels."""
        in_log = self._in_log
        for entry in entries:
            in_log[entry.channel] -= 1
            if in_log[entry.channel] <= 0:
                del in_log[entry.channel]
        return {each.channel for each in entries}
