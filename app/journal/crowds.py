"""The most frequent events: the same event of many receivers at once."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.queues.receivers import Receiver
    from holdfast.journal.builder import FrameBuilder
    from holdfast.journal.columns import Columns
    from holdfast.journal.event_clock import JournalClock
    from holdfast.journal.interning import Interned


class Crowds:
    """Collects hand-overs or acknowledgements of the same messages for the builder's next frame.

    These are the most frequent events of all. A receiver that gets the same messages in the same
    turn as the one before is only appended to its group. It shares the time of the group, unless a
    later time was read meanwhile. Acknowledgements do not read the clock: their order after
    hand-overs needs only that others do.

    Args:
        attempt: The number of the hand-over; None for acknowledgements.
    """

    def __init__(
        self,
        builder: "FrameBuilder",
        clock: "JournalClock",
        kind: str,
        attempt: int | None = None,
    ) -> None:
        self._builder = builder
        self._clock = clock
        self._kind = kind
        self._attempt = attempt
        # The latest messages, their receivers, the turn, the time, and the clock's last reading
        # then.
        self._messages: Sequence[Message] = ()
        self._receivers: list[Receiver] = []
        self._turn = 0.0
        self._at = self._seen = 0
        # For this frame: receivers and their group, by the first of them.
        self._columns: Columns | None = None
        self._groups: dict[str, tuple[list[Receiver], Interned]] = {}

    def add(self, receiver: "Receiver", messages: "Sequence[Message]", turn: float) -> None:
        """Add a receiver of these messages, at least one, which must no longer change."""
        clock = self._clock
        if turn != self._turn or self._seen != clock.us or messages != self._messages:
            self.end()
            self._at = clock.peek() if self._attempt is None else clock.read()
            self._turn, self._seen = turn, clock.us
            self._messages = messages
        self._receivers.append(receiver)

    def end(self) -> None:
        """Close the group of the latest messages."""
        if self._receivers:
            self._add_row(self._messages, self._receivers)
            self._messages, self._receivers = (), []

    def _add_row(self, messages: "Sequence[Message]", receivers: "list[Receiver]") -> None:
        columns = self._builder.columns
        if columns is not self._columns:
            # Ended receivers must not be kept in memory for long.
            self._columns = columns
            self._groups.clear()
        interning, count = columns.interning, len(messages)
        numbers = interning.message(messages[0])
        if count > 1:
            numbers = [interning.message(each) for each in messages]
        group = self._group(receivers, columns)
        events = count * len(receivers)
        columns.deliver(self._kind, numbers, group, self._at, self._attempt, events)

    def _group(self, receivers: "list[Receiver]", columns: "Columns") -> "Interned":
        """Return the receivers' group; very often it is the group of the last event."""
        first = receivers[0].key
        if len(receivers) == 1:
            return columns.interning.single(first)
        crowd = self._groups.get(first)
        if crowd is not None and crowd[0] == receivers:
            return crowd[1]
        group = columns.interning.new_group([receiver.key for receiver in receivers])
        self._groups[first] = receivers, group
        return group
