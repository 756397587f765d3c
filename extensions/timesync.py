"""Clock synchronisation: clients learn the offset of their clock, corrected for network delay."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.messages.batch import Batch

# No answer is needed if the client's estimate is at least this accurate.
_ACCURACY_MS = 25
# The largest integer that JavaScript represents exactly.
_MOST_MS = 2**53


class TimeSync(ServerExtension):
    """Answers `ext.timesync` in any message."""

    owns: ClassVar[frozenset[str]] = frozenset({"timesync"})

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._session_extension = _TimeSyncOfSession(wall_ms)

    def check(self, message: Json) -> None:
        sync = message["ext"]["timesync"]
        if not isinstance(sync, dict):
            raise Refused(ErrorReply.EXT_INVALID, "user.illegalArgument", "timesync")
        for name in ("tc", "l", "o"):
            # JavaScript sends null for NaN.
            if sync.get(name) is not None and not _is_time(sync[name]):
                raise Refused(ErrorReply.EXT_INVALID, "user.illegalArgument", f"timesync.{name}")

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        if "timesync" not in (handshake.get("ext") or {}):
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
        if sync is not None:
            sync["ts"] = self._wall_ms()
        return True

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        sync = asked.get("timesync")
        # A refused message may not have reached `incoming`: then `ts` is the client's.
        if not reply["successful"] or sync is None or "ts" not in sync:
            return
        sent, offset, lag = (int(sync.get(name) or 0) for name in ("tc", "o", "l"))
        accuracy = sent + offset + lag - sync["ts"]
        if lag == 0 or abs(accuracy) >= _ACCURACY_MS:
            taken = self._wall_ms() - sync["ts"]
            answer = {"tc": sync.get("tc"), "ts": sync["ts"], "p": taken, "a": accuracy}
            reply.setdefault("ext", {})["timesync"] = answer


def _is_time(value: object) -> bool:
    """Return whether the value is a number in the range that JavaScript counts exactly."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= _MOST_MS
