"""What most deliveries tell: rows that grow while the server works, receiver by receiver."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

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
        "_kind",
        "_last",
        "_messages",
        "_receivers",
        "_rows",
        "_time",
        "count",
    )

    def __init__(self, kind: str, attempt: int, time: Callable[[], int]) -> None:
        self._kind = kind
        self._attempt = attempt
        self._time = time
        # Events, but for those of the row that grows.
        self.count = 0
        self._rows: list[Row] = []
        self._channels: dict[int, str] = {}
        # Of the row that grows.
        self._last: Message | None = None
        self._messages: Sequence[Message] = ()
        self._receivers: list[str] = []

    @property
    def weight(self) -> int:
        """How much there is to be written, in rows."""
        return len(self._rows)

    def note(self, receiver: "Receiver", messages: "Sequence[Message]") -> None:
        """It happened to these, of which there is one at least; they must not change any more."""
        if messages[-1] is self._last and messages == self._messages:
            self._receivers.append(receiver.key)
        else:
            self.end_turn()
            self._last, self._messages = messages[-1], messages
            self._receivers = [receiver.key]
            for message in messages:
                self._channels[message.id] = message.channel
            ids = [message.id for message in messages]
            row = (self._kind, ids, self._attempt, None, self._receivers, [self._time()])
            self._rows.append(row)

    def end_turn(self) -> None:
        """What comes now has a time, and a row, of its own; messages are not needed any more."""
        if self._last is not None:
            self.count += len(self._messages) * len(self._receivers)
            self._last, self._messages = None, ()

    def take(self, channels: dict[int, str]) -> "tuple[int, list[Row]]":
        """How many events there are, and their rows, and channels besides; others begin."""
        self.end_turn()
        count, rows = self.count, self._rows
        channels.update(self._channels)
        self.count, self._rows, self._channels = 0, [], {}
        return count, rows


class SingleNotes:
    """What happens to many with the same messages, but to each at a time of its own."""

    __slots__ = ("_channels", "_kind", "_open", "_rows", "_time", "count", "weight")

    def __init__(self, kind: str, time: Callable[[], int]) -> None:
        self._kind = kind
        self._time = time
        # Events, and how often it happened.
        self.count = self.weight = 0
        self._rows: list[Row] = []
        self._channels: dict[int, str] = {}
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
            row[5].append(self._time())
        else:
            for message in messages:
                self._channels[message.id] = message.channel
            ids = [message.id for message in messages]
            row = (self._kind, ids, None, None, [receiver.key], [self._time()])
            self._open[last] = row
            self._rows.append(row)

    def take(self, channels: dict[int, str]) -> "tuple[int, list[Row]]":
        """How many events there are, and their rows, and channels besides; others begin."""
        count, rows = self.count, self._rows
        channels.update(self._channels)
        self.count, self.weight, self._rows, self._channels = 0, 0, [], {}
        self._open.clear()
        return count, rows
