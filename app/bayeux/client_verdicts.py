"""Applies verdicts of clients, before anything else in the message that carries them.

A durable session's refusal is answered once the store has its dead letter, even if the store is
away for a while.
"""

from collections.abc import Sequence

from holdfast.bayeux.codec import Json
from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.reading import verdicts_of
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.services import ServiceCall
from holdfast.bayeux.sessions import Session
from holdfast.bayeux.turn_over import TurnOver
from holdfast.delivery.settlement import Settlement
from holdfast.delivery.verdicts import SILENT, Refusals, Verdict

# More verdicts than these are read in one turn; those that confirm take effect in the next.
_MANY = 1000


def apply_of_message(
    state: ServerState,
    settlement: Settlement[Session],
    session: Session,
    message: Json,
    now: float,
) -> None:
    """Apply the verdicts in `ext.delivery` of the handled message. Raises `TurnOver`."""
    request = session.request
    client_verdicts = SILENT if request is None else request.client_verdicts
    if client_verdicts.verdicts:
        _apply(state, settlement, session, client_verdicts.verdicts, now)
    if message["channel"] == "/meta/connect" and (
        client_verdicts.pending or session.queue.has_pending
    ):
        session.queue.keep_pending(client_verdicts.pending)


def apply_of_call(
    state: ServerState,
    settlement: Settlement[Session],
    call: ServiceCall,
    now: float,
) -> None:
    """Apply the verdicts in the data of a call. Raises `Refused` and `TurnOver`."""
    session = call.session
    if session.terms is None:
        # This session's events have no `seq` that a verdict could name.
        raise Refused(ErrorReply.DELIVERY_INVALID, "user.illegalArgument", "verdicts")
    request = session.request
    is_new = request is None or request.progress is None
    verdicts = verdicts_of(state.options, call.data) if is_new else ()
    state.budgets.spend_letters(session, verdicts, now)
    call.is_kept = session.is_durable
    _apply(state, settlement, session, verdicts, now)


def _apply(
    state: ServerState,
    settlement: Settlement[Session],
    session: Session,
    verdicts: Sequence[Verdict],
    now: float,
) -> None:
    request = session.request
    progress = None if request is None else request.take_progress()
    if progress is None and len(verdicts) > _MANY and request is not None:
        request.progress = verdicts
        raise TurnOver
    has_time = True
    if isinstance(progress, Refusals):
        refusals = progress
    else:
        refusals = settlement.settle_confirmed(session, progress or verdicts, now)
        has_time = progress is None or not refusals.rest
    if not (has_time and settlement.failures.carry_out(session, refusals, now, state.is_turn_over)):
        if request is not None:
            request.progress = refusals
        raise TurnOver
    if refusals.refused_any and session.is_durable and request is not None:
        request.waits_for_store = True
    if session.held_connect is not None and session.queue.count:
        # The verdicts may have settled all that blocked the queue.
        state.hub.make_ready(session)
