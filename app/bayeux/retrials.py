"""Channels that are held back are tried again when it is time: which message, and with whom."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from app.bayeux.sessions import Session
from app.delivery.messages import Message
from app.delivery.retrial import Retrial

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

# Channels that are tried in one tick, receivers of one that are looked at, and messages: of each
# of them, and of all.
_TRIES = 10
_LOOKS = 200
_DEPTH = 500
_MESSAGES = 5000


class Retrials:
    """Looks for the message and the receiver that may show that a channel passes again."""

    def __init__(self, bayeux: "Bayeux") -> None:
        self._bayeux = bayeux

    def tick(self) -> None:
        """Time has passed."""
        retrials, now = self._bayeux.guard.retrials, self._bayeux.now
        if not retrials:
            return
        due = [(name, each) for name, each in retrials.items() if each.due <= now]
        for name, retrial in due[:_TRIES]:
            if retrial.is_under_way or not self._try(name, retrial):
                retrial.give_up(now)

    def _try(self, name: str, retrial: Retrial) -> bool:
        """Whether there is somebody to be tried."""
        found = self._find(name, retrial)
        # Each receiver has its turn, also among very many that are not asked.
        retrial.offset += 1 if found else _LOOKS
        if found is None:
            return False
        session, message = found
        bayeux = self._bayeux
        retrial.begin(session, message, bayeux.now)
        # An answer that comes late counts, too.
        bayeux.settlement.listen(bayeux.now + bayeux.guard.window_s)
        bayeux.hub.flow_again(session)
        return True

    def _find(self, name: str, retrial: Retrial) -> tuple[Session, Message] | None:
        """Best of all with a message of a publisher of whom nothing was refused."""
        second_best, room = None, _MESSAGES
        for session in self._candidates(name, retrial.offset):
            for message in islice(_waiting(session), min(room, _DEPTH)):
                room -= 1
                if message.channel == name:
                    if retrial.is_unheard(message.sender):
                        return session, message
                    second_best = second_best or (session, message)
            if room <= 0:
                break
        return second_best

    def _candidates(self, name: str, first: int) -> Iterator[Session]:
        """Those who could be given something of the channel now."""
        bayeux, channel = self._bayeux, self._bayeux.channels.get(name)
        receivers = () if channel is None else bayeux.hub.routes.receivers(channel)
        for place in range(first, first + min(len(receivers), _LOOKS)):
            session = receivers[place % len(receivers)]
            if session.can_refuse and not session.has_left and session.flows(bayeux.now):
                yield session


def _waiting(session: Session) -> Iterator[Message]:
    """What waits in its queue, in order."""
    queue = session.queue
    return chain((entry.message for entry in queue.returned.values()), queue.waiting)
