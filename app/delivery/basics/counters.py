"""Counts what happened to the entries of queues; the numbers must balance.

accepted + restored + borrowed = waiting + in_flight + what left queues, by the table of steps:
acked, dead, expired, discarded, moved
"""

from collections import Counter
from typing import Final

from holdfast.delivery.basics.steps import ACCEPTED, STEPS, Reason

# The counters of what leaves queues, in the order of the table.
ENDS: Final = tuple(
    dict.fromkeys(book for step in STEPS for book in step.books if book != ACCEPTED)
)

_EXPIRED: Final = ENDS.index("expired")
_MOVED: Final = ENDS.index("moved")


class Counters:
    """Plain integers: a count costs the hot path one addition."""

    def __init__(self) -> None:
        self.published = 0
        # Publishes with a key that was seen before.
        self.repeated = 0
        self.accepted = 0
        # Entries that an earlier process accepted and left in the store.
        self.restored = 0
        # Work of other shards that came here, less work of this shard that was done there.
        self.borrowed = 0
        self.acked = 0
        self.dead = 0
        self.discarded: Counter[Reason] = Counter()
        # What else left queues, by the place of the counter in `ENDS`.
        self.left = [0] * len(ENDS)
        self.redelivered = 0
        self.acks_out_of_range = 0
        # Verdicts on entries that are unknown or not in flight.
        self.verdicts_unknown = 0
        # Subscribes refused because the server had no subscriptions left.
        self.subscriptions_refused = 0
        # Failed deliveries, by the family of their error code.
        self.refused: Counter[str] = Counter()
        # Error replies, by the reason that they give.
        self.errors: Counter[str] = Counter()
        # Logins by method, including failed ones.
        self.logins: Counter[str] = Counter()

    def entered(self) -> int:
        """The number of entries that this process must account for."""
        return self.accepted + self.restored + self.borrowed

    def books(self) -> dict[str, int]:
        """Return the entries that have left their queue, by counter."""
        books = dict(zip(ENDS, self.left, strict=True))
        books["acked"] += self.acked
        books["dead"] += self.dead
        books["discarded"] += self.discarded.total()
        return books

    @property
    def expired(self) -> int:
        return self.left[_EXPIRED]

    @property
    def moved(self) -> int:
        return self.left[_MOVED]

    def settled(self) -> int:
        """Return the number of entries that have left their queue."""
        return sum(self.books().values())
