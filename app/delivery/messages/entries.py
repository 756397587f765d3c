"""Entries: the state of messages that were handed over at least once."""

from bisect import bisect_left
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from holdfast.delivery.messages.former_attempts import FormerAttempts, former_of, tried
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message

if TYPE_CHECKING:
    from holdfast.delivery.messages.trails import Trail


class SettledBy(Enum):
    """What settles an entry after its hand-over."""

    # Enum's own hash is slow Python code; rows are looked up by identity.
    __hash__ = object.__hash__

    # The transport wrote it.
    WRITTEN = "written"
    # The receiver acked its batch or a later one. Unacked entries are sent again.
    BATCH = "batch"
    # The receiver gave a verdict.
    VERDICT = "verdict"


class Entry:
    """A message that was handed over at least once."""

    __slots__ = (
        "attempts",
        "batch",
        "due",
        "handed_at",
        "is_in_flight",
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
        *,
        batch: int = 0,
        attempts: int = 0,
        handed_at: float = 0.0,
        due: float = 0.0,
    ) -> None:
        self.message = message
        # The number of its last hand-over.
        self.seq = seq
        # The number of its first hand-over, which is its place among returned entries. They may
        # have been handed over again in another order.
        self.place = seq
        # The first of the consecutive batches that carried it, zero if none. `until` is the last of
        # them if a later batch did not carry it; an ack of that later batch does not settle this
        # entry.
        self.batch = batch
        self.until = 0
        self.attempts = attempts
        self.redelivered = 0
        self.handed_at = handed_at
        # Whether it is in flight: handed over and not returned since.
        self.is_in_flight = seq > 0
        # When a response is due; zero if never.
        self.due = due
        # Whether the receiver is still processing it.
        self.is_pending = False
        # Whether nothing else was in flight when it was handed over. If so, only this message can
        # be the reason why the receiver failed.
        self.was_alone = False
        # The trail of failed attempts.
        self.trail: Trail = ()
        former = former_of(message)
        if former is not None:
            self.attempts += former.attempts
            self.redelivered = former.redelivered
            self.was_alone = former.was_alone
            self.trail = former.trail

    @property
    def id(self) -> int:
        """The message id."""
        return self.message.id

    def may_have_had(self, numbers: Sequence[int]) -> bool:
        """Whether it may have had one of these numbers, in order, before its last hand-over."""
        first = bisect_left(numbers, self.place)
        return first < len(numbers) and numbers[first] < self.seq

    def for_others(self) -> Message:
        """Return the message for the queues of other sessions, with its attempts so far."""
        if not self.attempts:
            return self.message
        # Earlier returns are counted already.
        redelivered = self.redelivered + self.is_in_flight
        return tried(
            self.message, FormerAttempts(self.attempts, redelivered, self.trail, self.was_alone)
        )

    def mark(self) -> Mark:
        """Return the entry's progress, for the store."""
        # Positional arguments: keywords take half as long again, and there may be ten thousand
        # calls.
        return Mark(
            self.message.id,
            self.seq if self.is_in_flight else -self.seq,
            # After a restart, any later batch may be acked.
            0 if self.until else self.batch,
            self.attempts,
            self.redelivered,
            self.place,
            self.trail,
            self.was_alone and not self.place,
        )
