"""Whom messages are delivered to."""

from typing import TYPE_CHECKING

from app.delivery.entries import Settling
from app.delivery.queue import CallbackQueue

if TYPE_CHECKING:
    from app.delivery.dispatcher import Dispatcher

NOBODY = "anonymous"
# No publisher is called so; the server's own messages have an empty name.
_NOBODY_YET = "/"


class Receiver:
    """One receiver: its queue, what lets that flow, and the patterns that it subscribed to."""

    __slots__ = (
        "acked",
        "authorized_at",
        "dispatcher",
        "exceptions",
        "is_closed",
        "is_durable",
        "is_given_up",
        "is_ready",
        "key",
        "last_exception",
        "name",
        "number",
        "queue",
        "subscriptions",
        "took_before",
        "took_from",
    )

    def __init__(self, queue: CallbackQueue, number: int) -> None:
        self.queue = queue
        # Tells receivers of one process apart, and names those that have no other name.
        self.number = number
        self.subscriptions: set[str] = set()
        # Most never need one: theirs would be ALIVE and active all their lives.
        self.dispatcher: Dispatcher | None = None
        # When its rights were asked again: ids of messages that were accepted before are lower.
        self.authorized_at = 0
        # Its queue is kept in the store.
        self.is_durable = False
        # Nothing is delivered to it any more.
        self.is_closed = False
        # Closed because it failed: what comes for it yet is dead.
        self.is_given_up = False
        # Counted for those that can refuse: what they took, what failed, and with which code last.
        self.acked = 0
        self.exceptions = 0
        self.last_exception = ""
        # The publishers of what it took last: the latest, and another one before.
        self.took_from = self.took_before = _NOBODY_YET
        # Stands in the hub's list of receivers to be told something when this turn ends.
        self.is_ready = False
        self.go_by(f"{NOBODY}/-{number}")

    def go_by(self, key: str) -> None:
        """This is its name within this deployment: `joe/1`, or one that the server made up."""
        self.key = key
        # Its absolute one, as senders and receivers read it.
        self.name = f"client/{key}"

    @property
    def subject(self) -> str:
        """Whose receiver it is."""
        return self.key.rpartition("/")[0]

    @property
    def person(self) -> str:
        """Who speaks through it, as far as is known: one may have several receivers."""
        return self.key if self.subject == NOBODY else self.subject

    @property
    def can_refuse(self) -> bool:
        """Whether more is heard of it than that something was written."""
        return self.queue.settling is not Settling.WRITTEN

    def knows(self, publisher: str) -> bool:
        """Whether it took something of this publisher lately."""
        return publisher == self.took_from or publisher == self.took_before

    def flows(self, now: float) -> bool:
        """Whether its queue may be handed over now."""
        return self.dispatcher is None or self.dispatcher.flows(now)
