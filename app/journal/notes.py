"""What most deliveries tell: rows that grow while the server works, receiver by receiver."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.journal.schema import NS_PER_US

if TYPE_CHECKING:
    from app.delivery.messages import Message
    from app.delivery.receivers import Receiver
    from app.delivery.witness import Handout
    from app.journal.columns import Row


class CrowdNotes:
    """What was given out: rows of those who got the same messages at the same time."""

    __slots__ = ("_channels", "_crowds", "_kind", "_rows", "count")

    def __init__(self, kind: str, channels: dict[int, str]) -> None:
        self._kind = kind
        # Of messages, by their ids; filled here.
        self._channels = channels
        # Events.
        self.count = 0
        self._rows: list[Row] = []
        # By the first of them: receivers, and their names.
        self._crowds: dict[str, tuple[list[Receiver], list[str]]] = {}

    @property
    def weight(self) -> int:
        """How much there is to be written, in rows."""
        return len(self._rows)

    def note(self, given: "Sequence[Handout]") -> None:
        """This was given out."""
        for messages, receivers, at in given:
            self.count += len(messages) * len(receivers)
            ids, names = _ids(messages, self._channels), self._names(receivers)
            self._rows.append((self._kind, ids, 1, None, names, [at]))

    def _names(self, receivers: "list[Receiver]") -> list[str]:
        """Very often they are those of before, and then in the very same list."""
        first = receivers[0].key
        if len(receivers) == 1:
            return [first]
        crowd = self._crowds.get(first)
        if crowd is not None and crowd[0] == receivers:
            return crowd[1]
        names = [receiver.key for receiver in receivers]
        self._crowds[first] = receivers, names
        return names

    def take(self) -> "tuple[int, list[Row]]":
        """How many events there are, and their rows; others begin."""
        count, rows = self.count, self._rows
        self.count, self._rows = 0, []
        # Who has gone is not kept in memory for long.
        self._crowds.clear()
        return count, rows


class SingleNotes:
    """What happens to many with the same messages, but to each at a time of its own."""

    __slots__ = (
        "_channels",
        "_kind",
        "_messages",
        "_names",
        "_now_ns",
        "_open",
        "_rows",
        "_times",
        "count",
        "weight",
    )

    def __init__(self, kind: str, now_ns: Callable[[], int], channels: dict[int, str]) -> None:
        self._kind = kind
        self._now_ns = now_ns
        self._channels = channels
        # Events, and how often it happened.
        self.count = self.weight = 0
        self._rows: list[Row] = []
        # By the last of their messages.
        self._open: dict[int, Row] = {}
        # Of the row that was told of last: very often the next is told of the same.
        self._messages: Sequence[Message] = ()
        self._names: list[str] = []
        self._times: list[int] = []

    def note(self, receiver: "Receiver", messages: "Sequence[Message]") -> None:
        """It happened to these, of which there is one at least; they must not change any more."""
        self.count += len(messages)
        self.weight += 1
        if messages != self._messages:
            self._turn_to(messages)
        self._names.append(receiver.key)
        self._times.append(self._now_ns() // NS_PER_US)

    def _turn_to(self, messages: "Sequence[Message]") -> None:
        """Go on with their row, or begin it."""
        self._messages = messages
        ids = _ids(messages, self._channels)
        row = self._open.get(ids[-1])
        if row is not None and row[1] == ids:
            self._names, self._times = row[4], row[5]
            return
        self._names, self._times = [], []
        row = (self._kind, ids, None, None, self._names, self._times)
        self._open[ids[-1]] = row
        self._rows.append(row)

    def take(self) -> "tuple[int, list[Row]]":
        """How many events there are, and their rows; others begin."""
        count, rows = self.count, self._rows
        self.count, self.weight, self._rows = 0, 0, []
        self._open.clear()
        self._messages = ()
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
