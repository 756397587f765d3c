"""What has outlived its time leaves the queues where it waits, whoever is there to ask for it."""

from typing import TYPE_CHECKING

from app.bayeux.sessions import Session
from app.delivery.messages import Message
from app.delivery.timers import Timers

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

# What one tick may look at: about 3 us each. What is left has its turn in the next one.
_MOST = 5000
# So many entries of a queue cost as much as one message that leaves it.
_ENTRIES = 64
# How many messages make room for one that found none.
_FEW = 16


class Fuse:
    """Stands in the timers for what waits for one session."""

    __slots__ = ("alarm", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.alarm = 0


class Expiry:
    """Looks at queues when the life of something in them ends, and when they are full."""

    def __init__(self, bayeux: "Bayeux") -> None:
        self._bayeux = bayeux
        self._timers: Timers[Fuse] = Timers()

    def watch(self, session: Session) -> None:
        """Something waits for the session, or waits again, whose life will end."""
        mortals = session.queue.mortals
        if mortals and not session.is_closed:
            if session.fuse is None:
                session.fuse = Fuse(session)
            self._timers.ring_by(session.fuse, mortals[0].expires_ms / 1000)

    def begin(self, session: Session) -> None:
        """The session is back from the store, with what was over before, too."""
        self._bayeux.exits.expire(session)
        self.watch(session)

    def forget(self, session: Session) -> None:
        """Nothing waits for the session any more."""
        if session.fuse is not None:
            self._timers.drop(session.fuse)

    def tick(self) -> None:
        """Time has passed."""
        bayeux, left = self._bayeux, _MOST
        # The life of a message goes on while the server does not run.
        now = bayeux.node.now_ms() / 1000
        while left > 0 and (rung := self._timers.ring(now, most=1)):
            session = rung[0].session
            left -= 1 + (len(session.queue.waiting) + len(session.queue.returned)) // _ENTRIES
            try:
                left -= bayeux.exits.expire(session, max(left, 1))
            except BaseException:
                bayeux.log_fault(session)
            self.watch(session)

    def finds_room(self, session: Session, message: Message) -> bool:
        """Whether a message need not be refused by a full queue: there is room, or it is over."""
        bayeux = self._bayeux
        while bayeux.exits.expire(session, _FEW):
            if session.queue.offer(message) is None:
                return True
        if 0 < message.expires_ms <= bayeux.node.now_ms():
            bayeux.exits.expired(session, [message])
            return True
        return False
