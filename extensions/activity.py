"""Sessions that only keep their connection alive, and do nothing else, are ended."""

from typing import TYPE_CHECKING

from app.bayeux.codec import Json
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.sessions import Session

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux


class Activity(ServerExtension):
    """Ends a session at the first connect after it was inactive for too long."""

    def __init__(self, bayeux: "Bayeux", max_inactivity_s: float) -> None:
        self._bayeux = bayeux
        self._max_inactivity_s = max_inactivity_s

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        return self.resume(session, now)

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        return _ActivityOfSession(self._bayeux, self._max_inactivity_s, now)


class _ActivityOfSession(SessionExtension):
    def __init__(self, bayeux: "Bayeux", max_inactivity_s: float, now: float) -> None:
        self._bayeux = bayeux
        self._max_inactivity_s = max_inactivity_s
        self._active_at = now

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if not message["channel"].startswith("/meta/"):
            self._active_at = now
        elif message["channel"] == "/meta/connect" and self._is_idle(now):
            self._bayeux.end_by_server(session)
        return True

    def _is_idle(self, now: float) -> bool:
        return now - self._active_at > self._max_inactivity_s
