"""Clients learn how far their clock is from ours, the way of the messages taken into account."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from app.bayeux.codec import Json
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.sessions import Session

# A client whose idea of the offset is this good needs no answer.
_ACCURACY_MS = 25


class TimeSync(ServerExtension):
    """Answers `ext.timesync` of any message."""

    owns: ClassVar[frozenset[str]] = frozenset({"timesync"})

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._session_extension = _TimeSyncOfSession(wall_ms)

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        if not isinstance((handshake.get("ext") or {}).get("timesync"), dict):
            return None
        self._session_extension.incoming(session, handshake, now)
        return self._session_extension

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        return self._session_extension


class _TimeSyncOfSession(SessionExtension):
    optional: ClassVar[bool] = True

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        sync = (message.get("ext") or {}).get("timesync")
        if isinstance(sync, dict):
            sync["ts"] = self._wall_ms()
        return True

    def outgoing(self, session: Session, reply: Json, asked: Mapping[str, Any], now: float) -> None:
        sync = asked.get("timesync")
        # A refused message may not have come as far as `incoming`: its `ts` is not ours.
        if not reply["successful"] or not isinstance(sync, dict) or "ts" not in sync:
            return
        sent, offset, lag = (_number(sync.get(name)) for name in ("tc", "o", "l"))
        accuracy = sent + offset + lag - sync["ts"]
        if lag == 0 or abs(accuracy) >= _ACCURACY_MS:
            taken = self._wall_ms() - sync["ts"]
            answer = {"tc": sync.get("tc"), "ts": sync["ts"], "p": taken, "a": accuracy}
            reply.setdefault("ext", {})["timesync"] = answer


def _number(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0
