"""Ends sessions that only keep their connection alive."""

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json


class Activity(ServerExtension):
    """Ends a session at its first connect after too long an inactivity."""

    def __init__(self, server: ServerApi, max_inactivity_s: float) -> None:
        self._server = server
        self._max_inactivity_s = max_inactivity_s

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        return self.resume(session, now)

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        return _ActivityOfSession(self._server, self._max_inactivity_s, now)


class _ActivityOfSession(SessionExtension):
    def __init__(self, server: ServerApi, max_inactivity_s: float, now: float) -> None:
        self._server = server
        self._max_inactivity_s = max_inactivity_s
        self._active_at = now

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if not message["channel"].startswith("/meta/"):
            self._active_at = now
        elif message["channel"] == "/meta/connect" and self._is_idle(now):
            self._server.end_by_server(session)
        return True

    def _is_idle(self, now: float) -> bool:
        return now - self._active_at > self._max_inactivity_s
