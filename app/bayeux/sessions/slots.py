"""Session slots: sessions without a client are evicted to make room for new ones."""

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.expiry.unconnected import UnconnectedSessions
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.ends import SessionEnds
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.error_codes import CODES
from holdfast.delivery.settling.undelivered import Undelivered

_USED_UP = CODES["resource.exhaust"]
_WHY = "its client was away, and its session slot was needed"
# One in this many slots is freed before it is needed.
_SPARE = 16
# For a handshake, only a session with at most this many entries is evicted.
_FEW = 64


class SessionSlots:
    """Assigns session slots, and evicts the longest idle unconnected sessions when they run out."""

    def __init__(
        self,
        state: ServerState,
        ends: SessionEnds,
        undelivered: Undelivered[Session],
        unconnected: UnconnectedSessions,
    ) -> None:
        self._state = state
        self._ends = ends
        self._undelivered = undelivered
        self._unconnected = unconnected
        options = self._state.options
        self._most = options.max_sessions
        self._spare = max(self._most // _SPARE, 1)
        # How many unconnected sessions are never evicted.
        self._left_alone = self._most * options.unconnected_share // 100
        self._is_clearing = False
        self.evicted = 0

    # Eviction

    @property
    def has_room(self) -> bool:
        """Whether a slot is free, or a session can be evicted for a new one."""
        return self.free() > 0 or self._gives_way() is not None

    def give(self, now: float) -> None:
        """Ensure that a slot is free, if necessary by an eviction. Raises `Refused` before that."""
        if self.free() > 0:
            return
        idlest = self._gives_way()
        if idlest is None:
            raise busy(self._state)
        self._evict(idlest, now)

    def _gives_way(self) -> Session | None:
        """Return the session that can be evicted at once, if there is one."""
        idlest = self._idlest()
        if idlest is None or idlest.queue.count > _FEW or self._undelivered.is_congested:
            return None
        return idlest

    def tick(self, now: float) -> None:
        """Free slots before they are needed, over as many turns as necessary."""
        if not self._is_clearing and self._should_clear():
            self._is_clearing = True
            self._state.backlog.begin(self._clear_one, now)

    def _should_clear(self) -> bool:
        is_short = self.free() < self._spare
        return is_short and self._idlest() is not None and not self._undelivered.is_congested

    def _clear_one(self, now: float) -> bool:
        """Evict one session. Returns whether more must be evicted."""
        idlest = self._idlest()
        try:
            if idlest is not None:
                self._evict(idlest, now)
        except Exception:
            if idlest is not None:
                self._unconnected.remove(idlest)
                self._state.log_fault(idlest)
        self._is_clearing = self._should_clear()
        return self._is_clearing

    def free(self) -> int:
        """Return how many sessions can be opened before one is evicted."""
        return self._most - len(self._state.sessions) - self._state.handshakes_pending

    def _idlest(self) -> Session | None:
        """Return the session to evict next, or None if all may stay."""
        if len(self._unconnected.handshaken) > self._spare:
            return next(iter(self._unconnected.handshaken))
        if len(self._unconnected.absent) > self._left_alone:
            return next(iter(self._unconnected.absent))
        return None

    def _evict(self, session: Session, now: float) -> None:
        self.evicted += 1
        self._ends.end_with_letters(session, _USED_UP, text=_WHY, now=now)


def busy(state: ServerState) -> Refused:
    """Return the refusal of a handshake for lack of slots or time."""
    return later(state, ErrorReply.SERVER_BUSY)


def later(state: ServerState, error: ErrorReply) -> Refused:
    """Return a refusal that advises each client to retry at a random moment."""
    admission = state.admission
    delay_s = admission.spread_s(len(state.sessions)) if state.is_stopping else admission.delay_s()
    return Refused(error, advice=reconnect_advice(state.options, "handshake", delay_s))
