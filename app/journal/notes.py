"""What most deliveries tell: rows that grow while the server works, receiver by receiver."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.journal.schema import NS_PER_US

if TYPE_CHECKING:
    from app.delivery.messages import Message
    from app.delivery.receivers import Receiver
    from app.journal.columns import Row


class TurnNotes:
    """What happens to many at once, when a turn of the event loop ends.

    Whoever gets the same messages as the one before joins its row: messages are compared while
    they are at hand, for later each of them would have to be fetched from afar.
    """

    __slots__ = (
        "_attempt",
        "_channels",
        "_crowd_before",
        "_kind",
        "_last",
        "_messages",
        "_names",
        "_now_ns",
        "_receivers",
        "_rows",
        "count",
    )

    def __init__(
        self, kind: str, attempt: int, now_ns: Callable[[], int], channels: dict[int, str]
    ) -> None:
        self._kind = kind
        self._attempt = attempt
        self._now_ns = now_ns
        # Of messages, by their ids; filled here.
        self._channels = channels
        # Events, but for those of the row that grows.
        self.count = 0
        self._rows: list[Row] = []
        # Of the row that grows.
        self._last: Message | None = None
        self._messages: Sequence[Message] = ()
        self._receivers: list[str] = []
        self._crowd_before: list[Receiver] = []
        self._names: list[str] = []

    @property
    def weight(self) -> int:
        """How much there is to be written, in rows."""
        return len(self._rows)

    def note(self, receiver: "Receiver", messages: "Sequence[Message]") -> None:
        """It happened to these, of which there is one at least; they must not change any more."""
        if messages[-1] is self._last and messages == self._messages:
            self._receivers.append(receiver.key)
        else:
            if self._last is not None:
                self.end_turn()
            self._last, self._messages = messages[-1], messages
            self._receivers = [receiver.key]
            self._begin_row(messages, self._receivers)

    def _begin_row(self, messages: "Sequence[Message]", names: list[str]) -> None:
        ids, at = _ids(messages, self._channels), self._now_ns() // NS_PER_US
        self._rows.append((self._kind, ids, self._attempt, None, names, [at]))

    def crowd(self, messages: "Sequence[Message]", receivers: "list[Receiver]") -> None:
        """It happened to all of them; very often they are those of before."""
        self.end_turn()
        if receivers != self._crowd_before:
            self._crowd_before = receivers
            self._names = [receiver.key for receiver in receivers]
        self._begin_row(messages, self._names)
        self.count += len(messages) * len(receivers)

    def end_turn(self) -> None:
        """What comes now has a time, and a row, of its own; messages are not needed any more."""
        if self._last is not None:
            self.count += len(self._messages) * len(self._receivers)
            self._last, self._messages = None, ()

    def take(self) -> "tuple[int, list[Row]]":
        """How many events there are, and their rows; others begin."""
        self.end_turn()
        count, rows = self.count, self._rows
        self.count, self._rows = 0, []
        # Who has gone is not kept in memory for long.
        self._crowd_before, self._names = [], []
        return count, rows


class SingleNotes:
    """What happens to many with the same messages, but to each at a time of its own."""

    __slots__ = ("_channels", "_kind", "_now_ns", "_open", "_rows", "count", "weight")

    def __init__(self, kind: str, now_ns: Callable[[], int], channels: dict[int, str]) -> None:
        self._kind = kind
        self._now_ns = now_ns
        self._channels = channels
        # Events, and how often it happened.
        self.count = self.weight = 0
        self._rows: list[Row] = []
        # By the last of their messages.
        self._open: dict[int, Row] = {}

    def note(self, receiver: "Receiver", messages: "Sequence[Message]") -> None:
        """It happened to these, of which there is one at least."""
        self.count += len(messages)
        self.weight += 1
        last = messages[-1].id
        row = self._open.get(last)
        if row is not None and (
            len(messages) == len(row[1]) == 1 or row[1] == [message.id for message in messages]
        ):
            row[4].append(receiver.key)
            row[5].append(self._now_ns() // NS_PER_US)
        else:
            ids = _ids(messages, self._channels)
            row = (self._kind, ids, None, None, [receiver.key], [self._now_ns() // NS_PER_US])
            self._open[last] = row
            self._rows.append(row)

    def take(self) -> "tuple[int, list[Row]]":
        """How many events there are, and their rows; others begin."""
        count, rows = self.count, self._rows
        self.count, self.weight, self._rows = 0, 0, []
        self._open.clear()
        return count, rows


def _ids(messages: "Sequence[Message]", channels: dict[int, str]) -> list[int]:
    """All that is remembered of messages; their channels by these."""
    if len(messages) == 1:
        message = messages[0]
        channels[message.id] = message.channel
        return [message.id]
    for message in messages:
        channels[message.id] = message.channel
    return [message.id for message in messages]
