"""Publish keys, by which the store recognises a message that is published again."""

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord
from holdfast.delivery.messages.storing import PersistOutcome

# How long a publish key is remembered, by the store's clock, which never jumps.
KEY_LIFE_S = 24 * 3600


class PublishKey(MessageRecord):
    """The publish key of one message, and what the store knows about it."""

    __slots__ = ("digest", "first", "meaning")

    def __init__(self, digest: str) -> None:
        # A digest of the key and its owner: of fixed length, and not secret.
        self.digest = digest
        # The id of the message stored earlier with this key; 0 if there is none.
        self.first = 0
        # The outcome that a successful answer of the store means for this message.
        self.meaning = PersistOutcome.KEPT

    def is_of_copies(self) -> bool:
        # A copy is not published again.
        return False

    def identify(self, message: Message) -> None:
        """Let the key identify this message."""
        message.records = with_record(message.records, self)


def publish_key_of(message: Message) -> PublishKey | None:
    """Return the publish key of the message. Most have none."""
    return record_of(message.records, PublishKey)
