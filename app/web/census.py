"""All that is found by looking at each session, once."""

from collections.abc import Collection
from dataclasses import dataclass, field

from app.bayeux.life import State
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.delivery.dispatcher import State as Contact
from app.delivery.watch import first_free

# Messages looked at in each queue while channels are held back.
_DEPTH = 20
_LIVING = (State.HANDSHAKEN, State.CONNECTED, State.AWAY)


@dataclass(slots=True)
class Census:
    """Sessions and what is in their queues, at one moment."""

    waiting: int = 0
    handed: int = 0
    # Accepted and restored, less settled, waiting and handed over.
    unaccounted: int = 0
    connects_held: int = 0
    held_back: int = 0
    durable: int = 0
    polling: int = 0
    states: dict[State, int] = field(default_factory=lambda: dict.fromkeys(_LIVING, 0))
    # Id of the message that waits longest, but for what is held back; none, if zero.
    oldest: int = 0

    @classmethod
    def of(cls, bayeux: Bayeux) -> "Census":
        census = cls()
        for session in bayeux.sessions:
            census.count(session, bayeux.guard.held)
        counters = bayeux.hub.counters
        here = census.waiting + census.handed
        census.unaccounted = counters.entered() - counters.settled() - here
        return census

    def count(self, session: Session, held: Collection[str]) -> None:
        queue, dispatcher = session.queue, session.dispatcher
        # To ask for what is in hands would unfold it.
        waiting = len(queue.waiting) + len(queue.returned)
        self.waiting += waiting
        self.handed += queue.count - waiting
        self.connects_held += session.held is not None
        self.states[session.state] += 1
        self.durable += session.is_durable
        is_active = True
        if dispatcher is not None:
            is_active = dispatcher.is_active
            self.held_back += not is_active
            self.polling += dispatcher.state is Contact.POLLING
        first = first_free(queue.waiting, held, _DEPTH) if is_active else None
        if first is not None and (not self.oldest or first.id < self.oldest):
            self.oldest = first.id
