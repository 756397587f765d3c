"""Applies verdicts of clients, before anything else in the message that carries them.

A durable session's refusal is answered once the store has its dead letter, even if the store is
away for a while.
"""

from collections.abc import Callable, Sequence

from holdfast.bayeux.budgets import Budgets
from holdfast.bayeux.codec import Json
from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.options import Options
from holdfast.bayeux.reading import verdicts_of
from holdfast.bayeux.services import ServiceCall
from holdfast.bayeux.sessions import Session
from holdfast.bayeux.turn_over import TurnOver
from holdfast.delivery.hub import Hub
from holdfast.delivery.settlement import Settlement
from holdfast.delivery.verdicts import SILENT, Refusals, Verdict

# A turn that reads more verdicts than this leaves confirmations to the next turn, and refusals to
# those after it.
_MANY = 1000


class VerdictHandler:
    """Settles entries as clients say."""

    def __init__(
        self,
        settlement: Settlement[Session],
        hub: Hub[Session],
        options: Options,
        budgets: Budgets,
        is_turn_over: Callable[[], bool],
    ) -> None:
        self._settlement = settlement
        self._hub = hub
        self._options = options
        self._budgets = budgets
        self._is_turn_over = is_turn_over

    def apply_of_message(
        self,
        session: Session,
        message: Json,
        now: float,
    ) -> None:
        """Apply the verdicts in `ext.delivery` of the handled message. Raises `TurnOver`."""
        request = session.request
        client_verdicts = SILENT if request is None else request.client_verdicts
        if client_verdicts.verdicts:
            self._apply(session, client_verdicts.verdicts, now)
        if message["channel"] == "/meta/connect" and (
            client_verdicts.pending or session.queue.has_pending
        ):
            session.queue.keep_pending(client_verdicts.pending)

    def apply_of_call(
        self,
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
        verdicts = verdicts_of(self._options, call.data) if is_new else ()
        self._budgets.spend_letters(session, verdicts, now)
        call.is_kept = session.is_durable
        self._apply(session, verdicts, now)

    def _apply(
        self,
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
            refusals = self._settlement.settle_confirmed(session, progress or verdicts, now)
            has_time = progress is None or not refusals.rest
        if not (
            has_time
            and self._settlement.failures.carry_out(session, refusals, now, self._is_turn_over)
        ):
            if request is not None:
                request.progress = refusals
            raise TurnOver
        if refusals.refused_any and session.is_durable and request is not None:
            request.waits_for_store = True
        if session.held_connect is not None and session.queue.count:
            # The verdicts may have settled all that blocked the queue.
            self._hub.make_ready(session)
