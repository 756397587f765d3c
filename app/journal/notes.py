"""What most deliveries tell: rows that grow while the server works, receiver by receiver."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
        "_join",
        "_kind",
        "_last",
        "_messages",
        "_rows",
        "_time",
        "count",
    )

    def __init__(self, kind: str, attempt: int, time: "Callable[[], int]") -> None:
        self._kind = kind
        self._attempt = attempt
        self._time = time
        # Events, but for those of the row that grows.
        self.count = 0
        self._rows: list[Row] = []
        # Of the row that grows.
        self._last: Message | None = None
        self._messages: Sequence[Message] = ()
        self._join: Callable[[Receiver | str], None] = list["Receiver | str"]().append

    def note(self, receiver: "Receiver", messages: "Sequence[Message]") -> None:
        """It happened to these, of which there is one at least; they must not change any more."""
        if messages[-1] is self._last and messages == self._messages:
            self._join(receiver)
        else:
            self.end_turn()
            receivers: list[Receiver | str] = [receiver]
            self._last, self._messages, self._join = messages[-1], messages, receivers.append
            row = (self._kind, messages, self._attempt, None, receivers, [self._time()])
            self._rows.append(row)

    def end_turn(self) -> None:
        """What comes now has a time, and a row, of its own."""
        if self._last is not None:
            self._last = None
            self.count += len(self._messages) * len(self._rows[-1][4])

    def take(self) -> "tuple[int, list[Row]]":
        """How many events there are, and their rows; others begin."""
        self.end_turn()
        count, rows = self.count, self._rows
        self.count, self._rows = 0, []
        return count, rows


class SingleNotes:
    """What happens to many with the same messages, but to each at a time of its own."""

    __slots__ = ("_kind", "_open", "_rows", "_time", "count")

    def __init__(self, kind: str, time: "Callable[[], int]") -> None:
        self._kind = kind
        self._time = time
        self.count = 0
        self._rows: list[Row] = []
        # By the last of their messages.
        self._open: dict[Message, Row] = {}

    def note(self, receiver: "Receiver", messages: "Sequence[Message]") -> None:
        """It happened to these, of which there is one at least; they must not change any more."""
        self.count += len(messages)
        row = self._open.get(messages[-1])
        if row is not None and row[1] == messages:
            row[4].append(receiver)
            row[5].append(self._time())
        else:
            row = (self._kind, messages, None, None, [receiver], [self._time()])
            self._open[messages[-1]] = row
            self._rows.append(row)

    def take(self) -> "tuple[int, list[Row]]":
        """How many events there are, and their rows; others begin."""
        count, rows = self.count, self._rows
        self.count, self._rows = 0, []
        self._open.clear()
        return count, rows
