"""Acknowledged messages: what a client did not acknowledge is sent again.

The handshake asks with `ext.ack: true`, or "true" as Jetty's page has it. From then on messages
travel on connect replies alone; each reply is a batch with a number of its own, and each connect
says which batch was received last.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.delivery.entries import Settling
from app.delivery.numbers import whole

_HANDSHAKE = "/meta/handshake"
_CONNECT = "/meta/connect"
# Who leaves has no other way to say what it has.
_ACKNOWLEDGING = frozenset([_CONNECT, "/meta/disconnect"])


class Ack(ServerExtension):
    """Turns a client's queue into an acknowledged one if the client asks for it."""

    owns: ClassVar[frozenset[str]] = frozenset({"ack"})

    def __init__(self, bayeux: Bayeux, *, announces_batch: bool) -> None:
        self._bayeux = bayeux
        self._announces_batch = announces_batch
        kind = _AckFromHandshakeOn if announces_batch else _AckOfSession
        self._session_extension = kind(bayeux)

    def check(self, message: Json) -> None:
        ack = message["ext"]["ack"]
        if message["channel"] == _HANDSHAKE:
            is_read = type(ack) is bool or ack == "true"
        else:
            is_read = type(ack) is int or whole(ack) is not None
        if not is_read:
            raise Refused(BayeuxError.EXT_INVALID, "user.illegalArgument", "ack")

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        asked = (handshake.get("ext") or {}).get("ack")
        if not asked:
            return None
        self._bayeux.agree(session, session.terms, acks=True)
        answer: Any = {"enabled": True, "batch": 0} if self._announces_batch else asked
        reply.setdefault("ext", {})["ack"] = answer
        return self._session_extension

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        return self._session_extension if session.queue.settling is Settling.BATCH else None


class _AckOfSession(SessionExtension):
    """Keeps nothing itself: the batches are in the session's queue."""

    def __init__(self, bayeux: Bayeux) -> None:
        self._bayeux = bayeux
        self._settlement = bayeux.settlement

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if message["channel"] in _ACKNOWLEDGING:
            ext = message.get("ext")
            batch = ext.get("ack") if ext else None
            if type(batch) is not int:
                batch = whole(batch)
            if batch is not None:
                self._settlement.acknowledge(session, batch, now)
        return True

    def outgoing(self, session: Session, reply: Json, asked: Mapping[str, Any], now: float) -> None:
        if (
            reply.get("channel") == _CONNECT
            and reply["successful"]
            and not (session.is_durable and self._bayeux.answers.lacks_store)
        ):
            # The batch that will be handed over with this reply.
            reply.setdefault("ext", {})["ack"] = session.queue.batch + 1


class _AckFromHandshakeOn(_AckOfSession):
    """Messages may come with the handshake's own reply, and are a batch too."""

    def outgoing(self, session: Session, reply: Json, asked: Mapping[str, Any], now: float) -> None:
        super().outgoing(session, reply, asked, now)
        if reply.get("channel") == _HANDSHAKE and session.queue.count:
            reply["ext"]["ack"]["batch"] = session.queue.batch + 1
