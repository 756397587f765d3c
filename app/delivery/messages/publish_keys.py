"""Publish keys, which identify a message that its publisher sends again."""

from holdfast.delivery.messages.persist_outcome import PersistOutcome

# How long a key is remembered, by the store's clock, which no clock of a machine can make jump.
LIFE_S = 24 * 3600


class PublishKey:
    """The publish key of one message, and what the store found under it."""

    __slots__ = ("digest", "first", "meaning")

    def __init__(self, digest: str) -> None:
        # A digest of the key and its owner: of fixed length, and not secret.
        self.digest = digest
        # The message that was stored before with this key; 0 if this is the first.
        self.first = 0
        # What a successful answer of the store means for this message.
        self.meaning = PersistOutcome.KEPT
