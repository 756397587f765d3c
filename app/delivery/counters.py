"""What happened to entries of queues: the books that must balance.

accepted + restored = acked + waiting + handed + dead + expired + discarded
"""

from collections import Counter
from enum import Enum


class Reason(Enum):
    """Why an entry was discarded; the only labels that the metric has."""

    OVERFLOW_ENTRIES = "resource.overflow.queue.entries"
    OVERFLOW_BYTES = "resource.overflow.queue.bytes"
    SESSION_EXPIRED = "session_expired"
    SESSION_ENDED = "session_ended"
    # An operator emptied the queue.
    CLEARED = "cleared"
    # It should have been a dead letter, but what waits for the store had no room for more.
    STORE_AWAY = "store_away"
    # Its receiver may not have it any more.
    NOT_ALLOWED = "not_allowed"
    # Nobody wants a dead letter of it.
    NO_LETTER = "no_letter"
    # It should have been a dead letter, but there are too many of these.
    LETTERS_FULL = "letters_full"


class Counters:
    """Plain integers: counting costs the hot path one addition."""

    __slots__ = (
        "accepted",
        "acked",
        "acks_out_of_range",
        "dead",
        "discarded",
        "expired",
        "published",
        "redelivered",
        "refused",
        "repeated",
        "restored",
        "verdicts_unknown",
    )

    def __init__(self) -> None:
        self.published = 0
        # Publishes that had come before, by their key.
        self.repeated = 0
        self.accepted = 0
        # Entries that the store had when this process began; another process accepted them.
        self.restored = 0
        self.acked = 0
        self.dead = 0
        self.expired = 0
        self.discarded: Counter[Reason] = Counter()
        self.redelivered = 0
        self.acks_out_of_range = 0
        # Verdicts on nothing that is in the receiver's hands, or on nothing at all.
        self.verdicts_unknown = 0
        # Deliveries that failed, by the family of the code.
        self.refused: Counter[str] = Counter()

    def entered(self) -> int:
        """Entries that this process has had to account for."""
        return self.accepted + self.restored

    def settled(self) -> int:
        """Entries that left their queue, whichever way."""
        return self.acked + self.dead + self.expired + self.discarded.total()
