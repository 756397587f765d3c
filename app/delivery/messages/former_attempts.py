"""The attempts that a message brings from the queues of other sessions."""

from operator import attrgetter
from typing import Final

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord
from holdfast.delivery.messages.trails import Trail, first_and_last


class FormerAttempts(MessageRecord):
    """The attempts of one message in other queues. They never change."""

    __slots__ = ("attempts", "redelivered", "trail", "was_alone")

    def __init__(
        self, attempts: int, redelivered: int, trail: Trail, was_alone: bool = False
    ) -> None:
        self.attempts = attempts
        self.redelivered = redelivered
        self.trail = trail
        # Whether nothing else was in flight during the last attempt.
        self.was_alone = was_alone

    def is_of_copies(self) -> bool:
        # A copy for another queue brings its own.
        return False

    def mark(self, message: Message) -> None:
        """Let the message bring these attempts."""
        message.records = with_record(message.records, self)


_NOT_TRIED: Final = FormerAttempts(0, 0, ())


def former_of(message: Message) -> FormerAttempts | None:
    """Return the former attempts of a message. Only copies that changed the queue have any."""
    return record_of(message.records, FormerAttempts)


def mark_redelivered(message: Message) -> None:
    """Let a message say that it may have been handed over before, once at least."""
    former = former_of(message) or _NOT_TRIED
    if not former.redelivered:
        FormerAttempts(former.attempts, 1, former.trail, former.was_alone).mark(message)


def tried(message: Message, former: FormerAttempts) -> Message:
    """Return a copy of the message for other queues, with these attempts."""
    copy = message.for_other_queues()
    former.mark(copy)
    return copy


def joined(one: FormerAttempts, other: FormerAttempts) -> FormerAttempts:
    """Return the attempts of two copies of a message that become one.

    The higher count applies: attempts made before the copies parted must not count twice.
    """
    more = max(one, other, key=attrgetter("attempts"))
    together = sorted({*one.trail, *other.trail}, key=attrgetter("time", "n"))
    redelivered = max(one.redelivered, other.redelivered)
    return FormerAttempts(more.attempts, redelivered, first_and_last(together), more.was_alone)
