"""Acknowledged messages: what a client did not acknowledge is sent again.

The handshake asks with `ext.ack: true`, or "true" as Jetty's page has it. From then on messages
travel on connect replies alone; each reply is a batch with a number of its own, and each connect
says which batch was received last.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from app.bayeux.codec import Json
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.delivery.entries import Settling

_HANDSHAKE = "/meta/handshake"
_CONNECT = "/meta/connect"


class Ack(ServerExtension):
    """Turns a client's queue into an acknowledged one if the client asks for it."""

    owns: ClassVar[frozenset[str]] = frozenset({"ack"})

    def __init__(self, bayeux: Bayeux, *, announces_batch: bool) -> None:
        self._bayeux = bayeux
        self._announces_batch = announces_batch
        kind = _AckFromHandshakeOn if announces_batch else _AckOfSession
        self._session_extension = kind(bayeux)

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        asked = (handshake.get("ext") or {}).get("ack")
        if asked is not True and asked != "true":
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
        if message["channel"] == _CONNECT:
            ext = message.get("ext")
            if ext and "ack" in ext:
                batch = ext["ack"]
                said = batch if type(batch) is int else -1
                self._settlement.acknowledge(session, said, now)
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
