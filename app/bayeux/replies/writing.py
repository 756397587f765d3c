"""Writes the reply to a connect or a handshake, once its messages are handed over."""

from holdfast.bayeux.extending.chain import run_outgoing
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.state.changed_rights import rights_changed_at
from holdfast.bayeux.state.cursors import cursors_of
from holdfast.bayeux.wire.codec import encode_reply
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.routing.hub import Hub


def write_open_reply(
    exchange: Exchange, session: Session, *, batch: Batch | None, now: float, hub: Hub[Session]
) -> bool:
    """Write the open reply. Returns whether the batch, if there is one, may travel with it."""
    reply = exchange.open_reply
    if reply is None or exchange.is_written:
        return True
    exchange.is_written = True
    cursors = None if exchange.is_handshake else cursors_of(session)
    if cursors is not None:
        undelivered = session.queue.ids() if session.queue.count else ()
        cursors.add_to(reply, hub.complete_cursor(), undelivered)
    may_travel = True
    if session.extensions:
        client_id, changed_at = session.client_id, rights_changed_at(session)
        count, pauses = session.queue.count, session.pauses
        passes = run_outgoing(session, reply, exchange.asked, now, batch=batch)
        # A hook may have changed what the session may get.
        may_travel = (
            passes
            and session.client_id == client_id
            and rights_changed_at(session) == changed_at
            and session.pauses == pauses
            and session.queue.count >= count
            and not session.has_left
            and session.flows(now)
        )
    if may_travel and exchange.is_handshake and batch is not None:
        # cometd.js connects only after it has got them.
        reply["x-messages"] = len(batch.messages)
    exchange.replies[exchange.place] = encode_reply(reply, session.extensions)
    return may_travel
