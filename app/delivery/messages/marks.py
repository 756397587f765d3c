"""Marks: how far entries have come, as the store remembers it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.delivery.messages.trails import FormerAttempts

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.messages.trails import Trail


class Mark(NamedTuple):
    """The progress of one entry of a queue."""

    id: int
    # The number of the last hand-over, negative if returned since; 0 if it is new.
    seq: int = 0
    batch: int = 0
    attempts: int = 0
    redelivered: int = 0
    # The place among returned entries: the number of the first hand-over; 0 if it is new.
    position: int = 0
    # The trail of failed attempts.
    trail: "Trail" = ()
    # Of a new entry: whether nothing else was in flight in the last attempt elsewhere.
    was_alone: bool = False

    @property
    def is_in_flight(self) -> bool:
        return self.seq > 0

    def mark(self) -> "Mark":
        return self

    def with_former(self, message: "Message") -> "Message":
        """Return the new message as the queue had it: with the attempts of other sessions."""
        if not self.attempts:
            return message
        return message.tried(
            FormerAttempts(self.attempts, self.redelivered, self.trail, self.was_alone)
        )


class Marked(Protocol):
    """An entry whose state at the end of the turn is to be stored, whatever happens meanwhile."""

    @property
    def id(self) -> int:
        """The id of its message."""
        ...

    @property
    def seq(self) -> int:
        """The number of its last hand-over."""
        ...

    @property
    def attempts(self) -> int: ...

    @property
    def is_in_flight(self) -> bool:
        """Whether it was not returned since its last hand-over."""
        ...

    def mark(self) -> Mark:
        """Return how far it has come."""
        ...


class BatchMark(NamedTuple):
    """A first hand-over to a session that had nothing else in flight."""

    number: int
    # The number of the first message; the others follow.
    seq: int
    ids: Sequence[int]

    def marks(self) -> list[Mark]:
        """Return the same as marks of single entries."""
        return [Mark(id, seq, self.number, 1, 0, seq) for seq, id in enumerate(self.ids, self.seq)]
