"""What makes a message known again that its publisher sends once more."""

from app.delivery.keeper import Kept

# So long a key is remembered, by the times at which messages were received.
LIFE_NS = 24 * 3600 * 1_000_000_000


class Key:
    """The key of one message, and what the store found under it."""

    __slots__ = ("digest", "first", "meaning")

    def __init__(self, digest: str) -> None:
        # Of the key and of whose it is: all of the same length, and nobody's secret.
        self.digest = digest
        # The message with this key that was kept before; 0: this is the first.
        self.first = 0
        # What it means for this message that the store did what it was told.
        self.meaning = Kept.KEPT
