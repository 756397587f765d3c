"""Marks: the progress of entries, as stored."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from holdfast.delivery.messages.former_attempts import FormerAttempts, tried

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.messages.trails import Trail


class Mark(NamedTuple):
    """The progress of one entry of a queue."""

    id: int
    # The number of the last hand-over: negative if returned since, 0 if the entry is new.
    seq: int = 0
    batch: int = 0
    attempts: int = 0
    redelivered: int = 0
    # The place among returned entries, which is the number of the first hand-over; 0 if it is new.
    position: int = 0
    # The trail of failed attempts.
    trail: "Trail" = ()
    # For a new entry: whether nothing else was in flight during its last attempt in another queue.
    was_alone: bool = False

    @property
    def is_in_flight(self) -> bool:
        return self.seq > 0

    def mark(self) -> "Mark":
        return self

    def with_former(self, message: "Message") -> "Message":
        """Return a new message with the attempts that other sessions made."""
        if not self.attempts:
            return message
        # Work in flight is lent to another shard, which may have handed it over.
        redelivered = self.redelivered + self.is_in_flight
        return tried(
            message, FormerAttempts(self.attempts, redelivered, self.trail, self.was_alone)
        )


class Marked(Protocol):
    """An entry whose progress is stored as it stands when the turn ends."""

    @property
    def id(self) -> int:
        """The message id."""
        ...

    @property
    def seq(self) -> int:
        """The number of its last hand-over."""
        ...

    @property
    def attempts(self) -> int: ...

    @property
    def is_in_flight(self) -> bool:
        """Whether it has not been returned since its last hand-over."""
        ...

    def mark(self) -> Mark:
        """Return its progress."""
        ...


class BatchMark(NamedTuple):
    """The first hand-over to a session that had nothing else in flight."""

    number: int
    # The number of the first message. The others follow consecutively.
    seq: int
    ids: Sequence[int]

    def marks(self) -> list[Mark]:
        """Return the same information as a mark for each entry."""
        return [Mark(id, seq, self.number, 1, 0, seq) for seq, id in enumerate(self.ids, self.seq)]


NO_HAND_OVERS: Final[Mapping[str, BatchMark]] = {}
