"""Which way messages that are not stored take to other shards: links, or the log.

A link takes them to another process without a store. The log takes them if there is no link to
some shard for now, and for a while after a message that is stored: these come in order with them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from holdfast.cluster.frames import Behind, Entry, split, write
from holdfast.cluster.log import Log
from holdfast.cluster.places import NOWHERE, Place

# The name of a place in the log in what must be shown before a frame on a link.
LOG: Final = "log"
# How long the log takes all messages after one that is stored.
_STORING_S: Final = 0.1
# For how long what other shards have pruned is certain. They give up a link later.
_FRESH_S: Final = 1.0


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


class Passing:
    """Passes messages on, over links or by the log, in their order.

    Args:
        end: Returns the end of the log, as far as the store has answered.
        may_speak: Returns whether this process has the shard for certain.
    """

    def __init__(self, log: Log, end: Callable[[], Place], may_speak: Callable[[], bool]) -> None:
        self._log = log
        self._end = end
        self._may_speak = may_speak
        # By number of the other shards. Without any, all messages take the log.
        self.passages: Mapping[int, Passage] = {}
        self._turn: list[Entry] = []
        # Since when the log takes no messages: the numbers of the links; none if it takes them.
        self._direct: list[int] = []
        # The place in the log that must be shown before the first frame on each link since then, by
        # number of the shard.
        self._first: dict[int, str] = {}
        # How many frames with messages the store has not answered, and until when more may follow.
        self._unanswered = 0
        self._storing_until = 0.0
        self._ticked_at = 0.0
        # The books: how many messages went over links.
        self.passed = 0

    def is_pruned(self, channel: str, now: float) -> bool:
        """Return whether a message of the channel would take the links, and no shard wants it.

        A process that was frozen may have lost links without knowing it.
        """
        if not self._direct or now - self._ticked_at > _FRESH_S:
            return False
        for passage in self.passages.values():
            if channel not in passage.pruned:
                return False
        return self._numbers() == self._direct

    def add(self, entry: Entry) -> None:
        """Pass a message on at the end of this turn."""
        self._turn.append(entry)

    def tick(self, now: float) -> None:
        """End the turn, several times a second."""
        self._ticked_at = now
        self.flush(now)

    def flush(self, now: float) -> None:
        """End the turn. Messages that take the log are in it before anything that follows."""
        if not self._turn:
            return
        turn, self._turn = self._turn, []
        numbers = self._numbers()
        if numbers and numbers == self._direct:
            self._send(turn)
        elif numbers and self._may_begin(now):
            self._direct = numbers
            end = self._end()
            self._first = {} if end == NOWHERE else dict.fromkeys(self.passages, str(end))
            self._send(turn)
        else:
            self._direct = []
            for entry in turn:
                self._log.pass_on(entry)

    def _numbers(self) -> list[int]:
        """Return the numbers of the links to all shards, or none."""
        numbers = []
        for passage in self.passages.values():
            if not passage.is_open:
                return []
            numbers.append(passage.sent[0])
        return numbers if self._may_speak() else []

    def _may_begin(self, now: float) -> bool:
        """Return whether the place of the last message in the log is known, and none is due."""
        return now >= self._storing_until and not self._unanswered and self._log.is_empty

    def _send(self, turn: Sequence[Entry]) -> None:
        most = 0
        # The frames with all entries, which most shards get, by the place that they come behind.
        whole: dict[str, list[bytes]] = {}
        for shard, passage in self.passages.items():
            entries, pruned = turn, passage.pruned
            if pruned:
                entries = [each for each in turn if each.channel not in pruned]
                if not entries:
                    continue
            place = self._first.pop(shard, "")
            is_whole = len(entries) == len(turn)
            frames = whole.get(place) if is_whole else None
            if frames is None:
                frames = _frames(entries, place)
                if is_whole:
                    whole[place] = frames
            for frame in frames:
                passage.send(frame)
            most = max(most, len(entries))
        self.passed += most

    # The log

    def stores(self, now: float) -> Behind:
        """Take note that a frame with a stored message follows, and return what is before it."""
        self._storing_until = now + _STORING_S
        return self.appends()

    def appends(self) -> Behind:
        """Take note that a frame with messages follows, and return what is before it."""
        self._direct = []
        self._unanswered += 1
        return self.behind()

    def behind(self) -> Behind:
        """Return how far others must have taken what went over links."""
        found: dict[str, str] = {}
        for shard, passage in self.passages.items():
            number, count = passage.sent
            if count:
                found[str(shard)] = f"{number} {count}"
        return found

    def answered(self) -> None:
        """Take note that the store has answered a frame with messages."""
        self._unanswered -= 1


def _frames(entries: Sequence[Entry], place: str) -> list[bytes]:
    first, *more = split(entries)
    return [write(first, behind={LOG: place} if place else {}), *[write(each) for each in more]]
