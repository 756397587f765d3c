"""Replies that are given later, in the place that they have among the others."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.bayeux.codec import Json, encode_reply
from app.bayeux.exchange import Exchange
from app.bayeux.extension_chain import run_outgoing

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux


def finish(bayeux: "Bayeux", message: Json, exchange: Exchange, reply: Json) -> bytes:
    """The reply as it leaves, completed by the extensions of its session."""
    session = exchange.session
    if session is not None and session.extensions:
        ext = message.get("ext")
        run_outgoing(session, reply, ext if isinstance(ext, dict) else {}, bayeux.now)
        if session.reauthorization is not None:
            # No messages travel with a handshake at which this was begun.
            reply.pop("x-messages", None)
    return encode_reply(reply, () if session is None else session.extensions)


def owe(bayeux: "Bayeux", message: Json, exchange: Exchange, reply: Json) -> Callable[[], None]:
    """Keep a place for a reply; call the result once, in a later turn, when it is complete."""
    slot = len(exchange.replies)
    exchange.replies.append(b"")
    exchange.owed += 1
    if exchange.session is not None:
        exchange.client_id = exchange.session.client_id

    def fulfil() -> None:
        exchange.replies[slot] = finish(bayeux, message, exchange, reply)
        exchange.owed -= 1
        if not exchange.owed:
            bayeux.answers.complete(exchange)

    return fulfil
