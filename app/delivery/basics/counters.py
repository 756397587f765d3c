"""Counts what happened to the entries of queues; the numbers must balance.

accepted + restored = acked + waiting + in_flight + dead + expired + discarded + moved
"""

from collections import Counter
from enum import Enum


class Reason(Enum):
    """Why an entry was discarded. The metric has exactly these labels."""

    # Enum's own hash is slow Python code, and each refused message looks one up.
    __hash__ = object.__hash__

    OVERFLOW_ENTRIES = "resource.overflow.queue.entries"
    OVERFLOW_BYTES = "resource.overflow.queue.bytes"
    SESSION_EXPIRED = "session_expired"
    SESSION_ENDED = "session_ended"
    # An operator cleared the queue.
    CLEARED = "cleared"
    # An operator cancelled the delayed message.
    CANCELLED = "cancelled"
    # The store's buffer was full, so there is no dead letter.
    STORE_UNAVAILABLE = "store_unavailable"
    # The receiver lost its right to the channel.
    NOT_ALLOWED = "not_allowed"
    # The topic was erased by force.
    ERASED = "erased"
    # Dead letters are switched off for this message.
    NO_LETTER = "no_letter"
    # Too many dead letters arrived at once, so there is no dead letter.
    LETTERS_FULL = "letters_full"
    # The subscription asked for the newest message only.
    OUTDATED = "outdated"


class Counters:
    """Plain integers: a count costs the hot path one addition."""

    def __init__(self) -> None:
        self.published = 0
        # Publishes with a key that was seen before.
        self.repeated = 0
        self.accepted = 0
        # Entries that an earlier process accepted and left in the store.
        self.restored = 0
        self.acked = 0
        self.dead = 0
        self.expired = 0
        self.discarded: Counter[Reason] = Counter()
        # Entries that moved to another queue, which counts them as accepted again.
        self.moved = 0
        self.redelivered = 0
        self.acks_out_of_range = 0
        # Verdicts on entries that are unknown or not in flight.
        self.verdicts_unknown = 0
        # Subscribes refused because the server had no subscriptions left.
        self.subscriptions_refused = 0
        # Failed deliveries, by the family of their error code.
        self.refused: Counter[str] = Counter()
        # Logins by method, including failed ones.
        self.logins: Counter[str] = Counter()

    def entered(self) -> int:
        """The number of entries that this process must account for."""
        return self.accepted + self.restored

    def settled(self) -> int:
        """Return the number of entries that have left their queue."""
        return self.acked + self.dead + self.expired + self.discarded.total() + self.moved
