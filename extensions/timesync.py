"""Clients learn how far their clock is from ours, the way of the messages taken into account."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.sessions import Session

# A client whose idea of the offset is this good needs no answer.
_ACCURACY_MS = 25
# What JavaScript counts exactly.
_MOST_MS = 2**53


class TimeSync(ServerExtension):
    """Answers `ext.timesync` of any message."""

    owns: ClassVar[frozenset[str]] = frozenset({"timesync"})

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._session_extension = _TimeSyncOfSession(wall_ms)

    def check(self, message: Json) -> None:
        sync = message["ext"]["timesync"]
        if not isinstance(sync, dict):
            raise Refused(BayeuxError.EXT_INVALID, "user.illegalArgument", "timesync")
        for name in ("tc", "l", "o"):
            # null is what JavaScript makes of a number that it does not know.
            if sync.get(name) is not None and not _is_time(sync[name]):
                raise Refused(BayeuxError.EXT_INVALID, "user.illegalArgument", f"timesync.{name}")

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

    def outgoing(self, session: Session, reply: Json, asked: Mapping[str, Any], now: float) -> None:
        sync = asked.get("timesync")
        # A refused message may not have come as far as `incoming`: its `ts` is not ours.
        if not reply["successful"] or sync is None or "ts" not in sync:
            return
        sent, offset, lag = (int(sync.get(name) or 0) for name in ("tc", "o", "l"))
        accuracy = sent + offset + lag - sync["ts"]
        if lag == 0 or abs(accuracy) >= _ACCURACY_MS:
            taken = self._wall_ms() - sync["ts"]
            answer = {"tc": sync.get("tc"), "ts": sync["ts"], "p": taken, "a": accuracy}
            reply.setdefault("ext", {})["timesync"] = answer


def _is_time(value: object) -> bool:
    """Whether it is a number of milliseconds that can be counted with."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= _MOST_MS
