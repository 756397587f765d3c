"""What a reply to a connect or a handshake carries: how many messages, and what it says of them.

It is written once its messages are handed over.
"""

from holdfast.bayeux.extending.chain import run_outgoing
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.state.changed_rights import rights_changed_at
from holdfast.bayeux.state.cursors import cursors_of
from holdfast.bayeux.wire.codec import encode_reply
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.routing.hub import Hub

# To a durable session: the store must have each hand-over before the reply leaves. With
# extensions, this takes about 8 ms.
_MOST_DURABLE = 300

# With cursors, because each message gets an event of its session's.
_MOST_WITH_CURSORS = 1_000

# If any message is a redelivery: a client that never acks asks for its whole queue again and again.
_MOST_AGAIN = 2_000


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


def most_of_reply(session: Session) -> int:
    """Return how many messages the next reply may carry. A negative number means all."""
    asked = -1 if session.terms is None else session.terms.max_entries
    if session.is_durable:
        most = _MOST_DURABLE
    elif cursors_of(session) is not None:
        most = _MOST_WITH_CURSORS
    elif session.queue.count > len(session.queue.new):
        most = _MOST_AGAIN
    else:
        return asked
    if session.queue.count <= most:
        return asked
    return min(asked, most) if asked >= 0 else most
