"""Places for sessions: what absent clients have left behind keeps no newcomer out.

A session is connected from its first `/meta/connect` until its client leaves or is lost. All others
stand here in the order in which they were last heard of, so that the idlest is found at once.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

from app.bayeux.advice import reconnect_advice
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.sessions import Session
from app.delivery.error_codes import CODES

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

_USED_UP = CODES["resource.exhaust"]
_WHY = "its client was away, and its place was needed"
# One place in so many is freed before it is needed.
_SPARE = 16
# A newcomer waits for no longer queue than this to be buried.
_FEW = 64


class Places:
    """Gives out the places, and ends the idlest unconnected sessions when they run out."""

    def __init__(self, bayeux: "Bayeux") -> None:
        self._bayeux = bayeux
        options = bayeux.options
        self._most = options.max_sessions
        self._spare = max(self._most // _SPARE, 1)
        # How many unconnected sessions are left alone, whoever comes.
        self._left_alone = int(self._most * options.unconnected_share)
        # Since the handshake that made them there was no connect; the oldest first.
        self._arriving: OrderedDict[Session, None] = OrderedDict()
        # They were left, lost or taken over since their last connect; the idlest first.
        self._deserted: OrderedDict[Session, None] = OrderedDict()
        self._is_clearing = False
        self.evicted = 0

    @property
    def unconnected(self) -> int:
        """How many sessions have no client."""
        return len(self._arriving) + len(self._deserted)

    def is_unconnected(self, session: Session) -> bool:
        return session in self._arriving or session in self._deserted

    # What happens to sessions

    def arrive(self, session: Session) -> None:
        """The session is new."""
        self._arriving[session] = None

    def hear(self, session: Session) -> None:
        """Its client has said something, but has not connected."""
        for waiting in (self._arriving, self._deserted):
            if session in waiting:
                waiting.move_to_end(session)

    def desert(self, session: Session) -> None:
        """Nobody is there for the session since this moment."""
        self._arriving.pop(session, None)
        self._deserted[session] = None
        self._deserted.move_to_end(session)

    def leave(self, session: Session) -> None:
        """The session has connected, or is gone."""
        self._arriving.pop(session, None)
        self._deserted.pop(session, None)

    def sort(self) -> None:
        """Put the sessions that came from the store, in no order, into theirs."""
        by_age = sorted(self._deserted, key=_seen)
        self._deserted = OrderedDict.fromkeys(by_age)

    # Room for others

    @property
    def has_room(self) -> bool:
        """Whether there is a place for one more, or somebody who may have to give way."""
        return self._free() > 0 or self._gives_way() is not None

    def give(self) -> None:
        """Have a place for one more session. Raises `Refused` before anything has happened."""
        if self._free() > 0:
            return
        idlest = self._gives_way()
        if idlest is None:
            raise busy(self._bayeux)
        self._evict(idlest)

    def _gives_way(self) -> Session | None:
        """Who could end at once for a newcomer."""
        idlest = self._idlest()
        if idlest is None or idlest.queue.count > _FEW or self._bayeux.exits.is_crowded:
            return None
        return idlest

    def tick(self) -> None:
        """Free places before they are needed, in as many turns as that takes."""
        if not self._is_clearing and self._should_clear():
            self._is_clearing = True
            self._bayeux.backlog.begin(self._clear_one)

    def _should_clear(self) -> bool:
        is_short = self._free() < self._spare
        return is_short and self._idlest() is not None and not self._bayeux.exits.is_crowded

    def _clear_one(self) -> bool:
        """Whether there is more to do."""
        idlest = self._idlest()
        try:
            if idlest is not None:
                self._evict(idlest)
        except Exception:
            if idlest is not None:
                self.leave(idlest)
                self._bayeux.log_fault(idlest)
        self._is_clearing = self._should_clear()
        return self._is_clearing

    def _free(self) -> int:
        return self._most - len(self._bayeux.sessions) - self._bayeux.handshakes_pending

    def _idlest(self) -> Session | None:
        """Who leaves next; None if all that are there may stay."""
        if len(self._arriving) > self._spare:
            return next(iter(self._arriving))
        if len(self._deserted) > self._left_alone:
            return next(iter(self._deserted))
        return None

    def _evict(self, session: Session) -> None:
        self.evicted += 1
        self._bayeux.give_up(session, _USED_UP, _WHY)


def busy(bayeux: "Bayeux") -> Refused:
    """The refusal for want of room or time."""
    return later(bayeux, BayeuxError.SERVER_BUSY)


def later(bayeux: "Bayeux", error: BayeuxError) -> Refused:
    """Not now: clients come back, each at a moment of its own."""
    advice = reconnect_advice(bayeux.options, "handshake", bayeux.admission.delay_s())
    return Refused(error, advice=advice)


def _seen(session: Session) -> int:
    return session.seen_ms
