"""Counts what happened to the entries of queues; the numbers must balance.

accepted + restored = acked + waiting + in_flight + dead + expired + discarded + moved
"""

from collections import Counter
from enum import Enum


class Reason(Enum):
    """Why an entry was discarded; the only labels of the metric."""

    # Used as a key for each refused message; the default hash of enums is slow Python code.
    __hash__ = object.__hash__

    OVERFLOW_ENTRIES = "resource.overflow.queue.entries"
    OVERFLOW_BYTES = "resource.overflow.queue.bytes"
    SESSION_EXPIRED = "session_expired"
    SESSION_ENDED = "session_ended"
    # An operator emptied the queue.
    CLEARED = "cleared"
    # The entry should have become a dead letter, but the store's buffer was full.
    STORE_UNAVAILABLE = "store_unavailable"
    # Its receiver has lost the right to it.
    NOT_ALLOWED = "not_allowed"
    # Its topic was erased by force.
    ERASED = "erased"
    # Dead letters of this message are not wanted.
    NO_LETTER = "no_letter"
    # The entry should have become a dead letter, but there were too many of these.
    LETTERS_FULL = "letters_full"
    # Its receiver wants only the newest message of the channel.
    OUTDATED = "outdated"


class Counters:
    """Plain integers: a count costs the hot path one addition."""

    def __init__(self) -> None:
        self.published = 0
        # Publishes whose key was seen before.
        self.repeated = 0
        self.accepted = 0
        # Entries that the store had when this process began; another process accepted them.
        self.restored = 0
        self.acked = 0
        self.dead = 0
        self.expired = 0
        self.discarded: Counter[Reason] = Counter()
        # Entries that moved to other queues, where each is accepted again.
        self.moved = 0
        self.redelivered = 0
        self.acks_out_of_range = 0
        # Verdicts on entries that are not in flight, or unknown.
        self.verdicts_unknown = 0
        # Messages refused because all subscriptions of the server were used up.
        self.subscriptions_refused = 0
        # Failed deliveries by the family of their code.
        self.refused: Counter[str] = Counter()
        # Logins by method, and failed ones.
        self.logins: Counter[str] = Counter()

    def entered(self) -> int:
        """The entries that this process has had to account for."""
        return self.accepted + self.restored

    def settled(self) -> int:
        """Return the entries that left their queue, whatever the outcome."""
        return self.acked + self.dead + self.expired + self.discarded.total() + self.moved
