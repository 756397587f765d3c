"""Acknowledged messages: batches that a client does not acknowledge are sent again.

A client asks for them in the handshake with `ext.ack: true` (or "true", as Jetty documents it).
From then on the server sends messages only with connect replies. Each reply is a numbered batch,
and each connect carries the number of the last batch received. Any other value in a handshake is
ignored, as in CometD; together with `ext.delivery`, which CometD does not know, it is an error.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.terms import asks_for_terms
from holdfast.delivery.basics.json_text import whole
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import SettledBy

_HANDSHAKE = "/meta/handshake"
_CONNECT = "/meta/connect"
# A disconnect is the client's last chance to acknowledge.
_ACKNOWLEDGING = frozenset([_CONNECT, "/meta/disconnect"])


class Ack(ServerExtension):
    """Turns on acknowledgements for sessions whose client asks for them."""

    owns: ClassVar[frozenset[str]] = frozenset({"ack"})

    def __init__(self, server: ServerApi, *, announces_batch: bool) -> None:
        self._server = server
        self._announces_batch = announces_batch
        kind = _AckFromHandshakeOn if announces_batch else _AckOfSession
        self._session_extension = kind(server)

    def check(self, message: Json) -> None:
        ext = message["ext"]
        ack = ext["ack"]
        if message["channel"] == _HANDSHAKE:
            is_read = type(ack) is bool or ack == "true" or not asks_for_terms(ext)
        else:
            is_read = type(ack) is int or whole(ack) is not None
        if not is_read:
            raise Refused(ErrorReply.EXT_INVALID, "user.illegalArgument", "ack")

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        asked = (handshake.get("ext") or {}).get("ack")
        if asked is not True and asked != "true":
            return None
        self._server.agree(session, session.terms, acks=True)
        answer: Any = {"enabled": True, "batch": 0} if self._announces_batch else asked
        reply.setdefault("ext", {})["ack"] = answer
        return self._session_extension

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        return self._session_extension if session.queue.settling is SettledBy.BATCH else None


class _AckOfSession(SessionExtension):
    """Stateless: the batches are kept in the session's queue."""

    def __init__(self, server: ServerApi) -> None:
        self._acknowledge = server.acknowledge

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if message["channel"] in _ACKNOWLEDGING:
            ext = message.get("ext")
            batch = ext.get("ack") if ext else None
            if batch is not None and type(batch) is not int:
                batch = whole(batch)
            if batch is not None:
                self._acknowledge(session, batch, now)
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
        if batch is not None and reply.get("channel") == _CONNECT and reply["successful"]:
            reply.setdefault("ext", {})["ack"] = batch.number


class _AckFromHandshakeOn(_AckOfSession):
    """Acks for versions in which the handshake reply, too, may carry messages as a batch."""

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        super().outgoing(session, reply, asked, now, batch=batch)
        if batch is not None and reply.get("channel") == _HANDSHAKE:
            reply["ext"]["ack"]["batch"] = batch.number
