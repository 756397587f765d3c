"""The history of one channel: its latest messages, and what clients may have passed over."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.messages.message import Message

NS_PER_CURSOR: Final = 1000
# How many late messages one history notes separately.
_MOST_PASSED: Final = 8
_by_id = attrgetter("id")


def cursor_of(id: int) -> int:
    """Return the cursor of the message with this id.

    It is in microseconds, because JavaScript reads larger numbers inexactly. No two messages of one
    server have the same cursor.
    """
    return id // NS_PER_CURSOR


class PassedOver(NamedTuple):
    """A message that came late, as cursors: a client with a cursor between them may lack it.

    A client at the first cursor has the message itself, and those before it will get it. Several
    may be noted as one.
    """

    since: int
    until: int


class KeptMessages:
    """The history of one channel: its latest messages, sorted by id.

    Args:
        floor: All messages after this cursor are here, unless they have expired.
        is_whole: Whether the store has all of them, too.
    """

    __slots__ = ("_messages", "channel", "floor", "is_floor_stored", "is_whole", "passed", "size")

    def __init__(self, channel: str, floor: int, *, is_whole: bool = False) -> None:
        self.channel = channel
        self.floor, self.is_whole = floor, is_whole
        # Whether the store has a separate floor of this channel.
        self.is_floor_stored = False
        # Messages that came late, each after clients may have passed its place: see `PassedOver`.
        self.passed: Sequence[PassedOver] = ()
        self.size = 0
        self._messages: list[Message] = []

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    @property
    def oldest(self) -> Message:
        """The oldest message. The history must not be empty."""
        assert self._messages
        return self._messages[0]

    def newest(self, count: int, now_ms: int) -> list[Message]:
        """Return up to `count` of the newest messages, oldest first; all of them if negative."""
        if not 0 <= count < len(self._messages):
            return list(_alive(self._messages, now_ms))
        found = list(islice(_alive(reversed(self._messages), now_ms), count))
        found.reverse()
        return found

    def since(self, cursor: int, now_ms: int, most: int | None = None) -> list[Message]:
        """Return the messages after the cursor, oldest first; up to `most` of them, if given."""
        # The lowest id with a higher cursor.
        place = bisect_left(self._messages, (cursor + 1) * NS_PER_CURSOR, key=_by_id)
        return list(islice(_alive(islice(self._messages, place, None), now_ms), most))

    def has_after(self, cursor: int) -> bool:
        """Return whether messages after the cursor are here, expired or not."""
        return bool(self._messages) and self._messages[-1].id >= (cursor + 1) * NS_PER_CURSOR

    def is_behind(self, message: Message) -> bool:
        """Return whether newer messages are here already."""
        return bool(self._messages) and message.id < self._messages[-1].id

    def append(self, message: Message) -> None:
        """Add a message. One that arrives after newer ones is inserted by its id."""
        self.size += len(message.wire)
        if self.is_behind(message):
            insort(self._messages, message, key=_by_id)
        else:
            self._messages.append(message)

    def note_late(self, message: Message, newest: int) -> None:
        """Note that a message came when clients may have had others up to the newest one."""
        fresh = PassedOver(cursor_of(message.id), cursor_of(newest))
        passed = [*[each for each in self.passed if each.until > self.floor], fresh]
        if len(passed) > _MOST_PASSED:
            first, second, *rest = sorted(passed)
            passed = [PassedOver(first.since, max(first.until, second.until)), *rest]
        self.passed = passed

    def left(self) -> dict[str, Any]:
        """Return what clients may lack, for another process."""
        return {
            "floor": self.floor,
            "stored": self.is_floor_stored,
            "passed": [list(each) for each in self.passed],
        }

    def go_on(self, left: Mapping[str, Any]) -> None:
        """Continue as `left` by an earlier process."""
        self.floor = left["floor"]
        self.is_floor_stored = left.get("stored", False)
        self.passed = [PassedOver(*each) for each in left["passed"]]

    def passed_over(self, cursor: int) -> "PassedOver | None":
        """Return what a client at this cursor may lack that came later; None if it has all."""
        for each in self.passed:
            if each.since < cursor <= each.until:
                return each
        return None

    def remove(self, message: Message) -> None:
        """Remove a message, which must be here."""
        messages = self._messages
        # Most leave from the front.
        is_first = messages[0] is message
        del messages[0 if is_first else bisect_left(messages, message.id, key=_by_id)]
        self.size -= len(message.wire)


def _alive(messages: Iterable[Message], now_ms: int) -> Iterator[Message]:
    """Yield the messages that have not expired."""
    return (each for each in messages if not 0 < end_of(each) <= now_ms)


def end_of(message: Message) -> int:
    """Return when the message leaves its history, in ms since 1970; zero if never."""
    life_ms = message.life_ms
    return 0 if life_ms is None else message.id // NS_PER_MS + life_ms
