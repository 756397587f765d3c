"""Counts of sessions and queued entries, taken in one pass."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.session_states import SessionState
from holdfast.delivery.guard.holds import Guard
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.delivery.routing.latency import first_free
from holdfast.delivery.shared_queues.places import WaitingPlaces

# Messages examined in each queue while channels are held.
_DEPTH = 20
_COUNTED = (SessionState.HANDSHAKEN, SessionState.CONNECTED, SessionState.AWAY)
# For stopped sessions, statistics show only whether their clients are present.
_COUNTED_AS = {
    SessionState.STOPPED: SessionState.CONNECTED,
    SessionState.STOPPED_AWAY: SessionState.AWAY,
}


@dataclass(slots=True)
class Census:
    """Sessions and the contents of their queues at one moment."""

    waiting: int = 0
    in_flight: int = 0
    # How many of the waiting entries wait for subjects, and how many in work queues.
    waiting_for_subjects: int = 0
    waiting_in_work_queues: int = 0
    # Accepted and restored entries, minus settled, waiting and in-flight ones. Must be 0.
    unaccounted: int = 0
    connects_held: int = 0
    held_back: int = 0
    durable: int = 0
    polling: int = 0
    # Without the sessions whose client is lost.
    states: dict[SessionState, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    # Sessions whose client was silent for too long, and may come back.
    lost: int = 0
    # Id of the message that has waited longest, other than on held channels; 0 if there is none.
    oldest: int = 0

    @classmethod
    def of(
        cls, sessions: Sessions, places: WaitingPlaces[Session], guard: Guard, counters: Counters
    ) -> "Census":
        census = cls()
        for session in sessions:
            census.count(session, guard.held)
        census.waiting_for_subjects = sum([each.queue.count for each in places.subjects.queues()])
        for each in places.work.queues():
            # Sessions of other shards may have some of it.
            census.waiting_in_work_queues += len(each.queue.new)
            census.in_flight += each.queue.in_flight_count
        census.waiting += census.waiting_for_subjects + census.waiting_in_work_queues
        census.waiting += sum([each.queue.count for each in places.apart()])
        for place in places.assigning():
            census.note_first(place, guard.held)
        here = census.waiting + census.in_flight
        census.unaccounted = counters.entered() - counters.settled() - here
        return census

    def count(self, session: Session, held: Collection[str]) -> None:
        queue, dispatcher = session.queue, session.dispatcher
        # Counted this way because asking for the entries in flight would create them.
        waiting = len(queue.new) + len(queue.returned)
        self.waiting += waiting
        self.in_flight += queue.count - waiting
        self.connects_held += session.held_connect is not None
        state = _COUNTED_AS.get(session.state, session.state)
        if state is not SessionState.AWAY and session.is_absent:
            self.lost += 1
        else:
            self.states[state] += 1
        self.durable += session.is_durable
        is_active = True
        if dispatcher is not None:
            is_active = dispatcher.is_active
            self.held_back += not is_active
            self.polling += session.connection_state is DispatcherState.POLLING
        if is_active:
            self.note_first(session, held)

    def note_first(self, receiver: Session, held: Collection[str]) -> None:
        """Record how long the first messages of a queue have waited, if not for a retry."""
        queue = receiver.queue
        self._note(first_free(queue.new, held, _DEPTH))
        if queue.returned and receiver.connection_state is not DispatcherState.POLLING:
            returned = [each.message for each in islice(queue.returned.values(), _DEPTH)]
            self._note(first_free(returned, held, _DEPTH))

    def _note(self, first: Message | None) -> None:
        if first is not None and (not self.oldest or first.id < self.oldest):
            self.oldest = first.id
