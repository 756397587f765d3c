"""What a queue remembers of a message that was in its receiver's hands."""

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from app.delivery.messages import Message

if TYPE_CHECKING:
    from app.delivery.attempts import Trail


class Settling(Enum):
    """What ends the stay of an entry that was handed over."""

    # Rows are looked up by identity; the usual hash of enums is a function in Python.
    __hash__ = object.__hash__

    # The transport has taken its bytes.
    WRITTEN = "written"
    # The receiver has acknowledged its batch, or a later one; what it did not comes again.
    BATCH = "batch"
    # The receiver has said what became of it.
    VERDICT = "verdict"


class Entry:
    """A message that was in its receiver's hands at least once."""

    __slots__ = (
        "attempts",
        "batch",
        "due",
        "handed_at",
        "is_pending",
        "message",
        "place",
        "redelivered",
        "seq",
        "trail",
        "until",
        "was_alone",
    )

    def __init__(
        self,
        message: Message,
        seq: int = 0,
        batch: int = 0,
        attempts: int = 0,
        handed_at: float = 0.0,
        due: float = 0.0,
    ) -> None:
        self.message = message
        # The number of its last hand-over.
        self.seq = seq
        # The number of its first one, which is its place among those that come again: some of them
        # may have been handed over once more than others.
        self.place = seq
        # The first of the batches that carried it, one behind the other; none, if zero. The last of
        # them, if a later one did not: to have that says nothing of this message.
        self.batch = batch
        self.until = 0
        self.attempts = attempts
        self.redelivered = 0
        self.handed_at = handed_at
        # When the receiver must have said something; never, if zero.
        self.due = due
        # The receiver says that it still works on it.
        self.is_pending = False
        # Whether the receiver had nothing else in hands when it got this: then nothing else can
        # be why it failed.
        self.was_alone = False
        # What became of earlier attempts, if they failed.
        self.trail: Trail = ()


class Carried(NamedTuple):
    """What one response carries: its batch and the numbers of its entries."""

    batch: int
    numbers: range
