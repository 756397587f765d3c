"""Adds to replies and messages when they were made: ISO 8601 in GMT, as Bayeux specifies."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.messages.batch import Batch


class Timestamp(ServerExtension):
    """Adds `timestamp` to everything that the server sends."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._session_extension = _TimestampOfSession(self._stamp)

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        return self._session_extension

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        return self._session_extension

    def event(self, event: Json) -> None:
        event["timestamp"] = self._stamp()

    def _stamp(self) -> str:
        moment = datetime.fromtimestamp(self._wall_ms() / 1000, UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 10000:02d}"


class _TimestampOfSession(SessionExtension):
    def __init__(self, stamp: Callable[[], str]) -> None:
        self._stamp = stamp

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        reply["timestamp"] = self._stamp()
