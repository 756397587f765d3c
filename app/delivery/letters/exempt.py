"""Messages that never become dead letters: they are about another message, or only useful now."""

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord


class _NoLetter(MessageRecord):
    """The record of such a message."""

    __slots__ = ()


def leave_no_letter(message: Message) -> None:
    """Discard the message where another would become a dead letter."""
    message.records = with_record(message.records, _NoLetter())


def leaves_no_letter(message: Message) -> bool:
    """Whether the message never becomes a dead letter."""
    return record_of(message.records, _NoLetter) is not None
