"""Rights that are taken back: what a session may not have any more leaves it."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from app.bayeux.errors import Refused
from app.bayeux.sessions import Session
from app.bayeux.subscriptions import part
from app.delivery.counters import Reason
from app.delivery.messages import Message

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

# After so many questions others have their turn, if this one has lasted long enough.
_QUESTIONS = 16


def reauthorize(bayeux: "Bayeux", session: Session) -> None:
    """Ask the rights again about all subscriptions of the session, and about what waits for it.

    That is done when the turn ends, or in later ones; until then the session is handed nothing.
    """
    if session.is_gone:
        return
    session.authorized_at = bayeux.hub.recheck_before = bayeux.node.stamp()
    if session.reauthorization is None:
        _begin(bayeux, session, session.subscriptions)
    else:
        session.reauthorization.begin_anew()


def recheck(bayeux: "Bayeux", message: Message, receivers: Sequence[Session]) -> None:
    """The message was accepted before some of its receivers were reauthorized, and comes after."""
    for session in receivers:
        is_doubtful = message.id < session.authorized_at and not session.is_gone
        if is_doubtful and session.reauthorization is None:
            _begin(bayeux, session, ())


def _begin(bayeux: "Bayeux", session: Session, patterns: Collection[str]) -> None:
    session.reauthorization = Reauthorization(bayeux, session, patterns)
    bayeux.backlog.add(session.reauthorization.go_on)


class Reauthorization:
    """One session whose rights are asked again: its subscriptions first, then its queue."""

    __slots__ = ("_answers", "_bayeux", "_channels", "_has_failed", "_patterns", "_session")

    def __init__(self, bayeux: "Bayeux", session: Session, patterns: Collection[str]) -> None:
        self._bayeux = bayeux
        self._session = session
        # Subscriptions, and channels of messages in the queue, that nobody was asked about yet.
        self._patterns = list(patterns)
        self._channels: list[str] = []
        # Whether the session may have what comes on these.
        self._answers: dict[str, bool] = {}
        self._has_failed = False

    def begin_anew(self) -> None:
        """The rights have changed again."""
        self._patterns = list(self._session.subscriptions)
        self._channels = []
        self._answers.clear()

    def go_on(self) -> bool:
        """Ask some questions; whether any are left."""
        session, bayeux = self._session, self._bayeux
        if not session.is_gone:
            for _ in range(_QUESTIONS):
                if not self._ask_next():
                    break
            else:
                return True
            self._withdraw()
            bayeux.ownership.note(session)
        session.reauthorization = None
        if session.queue.count:
            bayeux.hub.make_ready(session)
        return False

    def _ask_next(self) -> bool:
        """Whether there was anything to ask."""
        if self._patterns:
            pattern = self._patterns.pop()
            if not self._may_have(pattern):
                part(self._bayeux, self._session, pattern)
            return True
        if not self._channels:
            # Meanwhile something else may have come.
            routed = self._session.queue.routed_channels()
            self._channels = list(routed.difference(self._answers))
        if not self._channels:
            return False
        channel = self._channels.pop()
        self._answers[channel] = self._is_subscribed(channel) or self._may_have(channel)
        return True

    def _is_subscribed(self, name: str) -> bool:
        channel = self._bayeux.channels.get(name)
        subscriptions = self._session.subscriptions
        return channel is not None and not subscriptions.isdisjoint(channel.lookups)

    def _may_have(self, name: str) -> bool:
        """Whether it could subscribe to this now."""
        answer = self._answers.get(name)
        if answer is None:
            answer = self._answers[name] = self._ask(name)
        return answer

    def _ask(self, name: str) -> bool:
        bayeux, session = self._bayeux, self._session
        channel = bayeux.channels.get(name)
        if channel is None:
            return False
        message = {"channel": "/meta/subscribe", "subscription": name}
        try:
            bayeux.rights.check_system(session, channel)
            bayeux.rights.check_subscribe(session, channel, message, exists=True)
        except Refused:
            return False
        except BaseException:
            # As with a subscribe, nobody gets anything by a fault; no policy ends the server.
            if not self._has_failed:
                bayeux.log.exception("session %s could not be reauthorized", session.key)
            self._has_failed = True
            return False
        return True

    def _withdraw(self) -> None:
        """What the session may not have leaves its queue."""
        denied = {channel for channel, may_have in self._answers.items() if not may_have}
        messages = self._session.queue.withdraw_routed(denied) if denied else ()
        if messages:
            self._bayeux.exits.discarded(self._session, messages, Reason.NOT_ALLOWED)
