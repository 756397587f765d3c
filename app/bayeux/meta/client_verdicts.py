"""Applies clients' verdicts, before anything else in the message that carries them.

The refusal of a durable session's entry is answered once the store has its dead letter, even if the
store is unavailable for a while.
"""

from collections.abc import Callable, Sequence

from holdfast.bayeux.limits.budgets import Budgets
from holdfast.bayeux.meta.reading import verdicts_of
from holdfast.bayeux.session import Exchange, Session, TurnOver
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.messages.verdicts import Refusals, Verdict
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.settling.failures import Failures
from holdfast.delivery.settling.settlement import Settlement
from holdfast.settings import Settings

# How many numbers that were never sent a reply names.
_MOST_NAMED = 100
# With more verdicts than this, the turn that reads them leaves OK verdicts to the next turn, and
# refusals to the turns after that.
_MANY = 1000


def note_never_sent(session: Session, verdicts: Sequence[Verdict], reply: Json) -> None:
    """Name in the reply the verdicts whose numbers the session was never handed.

    Numbers that are settled already are not named: a verdict may come twice.
    """
    last = session.queue.seq
    unknown = [verdict.seq for verdict in verdicts if not 0 < verdict.seq <= last]
    if unknown:
        reply.setdefault("ext", {})["delivery"] = {"unknown": unknown[:_MOST_NAMED]}


class VerdictHandler:
    """Settles entries according to clients' verdicts."""

    def __init__(
        self,
        settlement: Settlement[Session],
        failures: Failures[Session],
        *,
        hub: Hub[Session],
        options: Settings,
        budgets: Budgets,
        is_turn_over: Callable[[], bool],
    ) -> None:
        self._settlement = settlement
        self._failures = failures
        self._hub = hub
        self._options = options
        self._budgets = budgets
        self._is_turn_over = is_turn_over

    def apply_of_message(self, exchange: Exchange, session: Session, message: Json) -> None:
        """Apply the verdicts in `ext.delivery` of a message. Raises `TurnOver`."""
        client_verdicts = exchange.client_verdicts
        if client_verdicts.verdicts:
            self._apply(exchange, session, client_verdicts.verdicts)
        if message["channel"] == "/meta/connect" and (
            client_verdicts.pending or session.queue.has_pending
        ):
            session.queue.keep_pending(client_verdicts.pending)

    def apply_of_call(self, call: ServiceCall) -> None:
        """Apply the verdicts in the data of a call. Raises `Refused` and `TurnOver`."""
        exchange, session = call.exchange, call.session
        if session.terms is None:
            # This session's events have no `seq` that a verdict could refer to.
            raise Refused(ErrorReply.DELIVERY_INVALID, "user.illegalArgument", "verdicts")
        verdicts = verdicts_of(self._options, call.data) if exchange.progress is None else ()
        self._budgets.spend_letters(session, verdicts, exchange.now)
        call.is_kept = session.is_durable
        note_never_sent(session, verdicts, call.reply)
        self._apply(exchange, session, verdicts)

    def _apply(self, exchange: Exchange, session: Session, verdicts: Sequence[Verdict]) -> None:
        now, progress = exchange.now, exchange.take_progress()
        if progress is None and len(verdicts) > _MANY:
            exchange.progress = verdicts
            raise TurnOver
        has_time = True
        if isinstance(progress, Refusals):
            refusals = progress
        else:
            refusals = self._settlement.settle_confirmed(session, progress or verdicts, now)
            has_time = progress is None or not refusals.rest
        if not (has_time and self._failures.carry_out(session, refusals, now, self._is_turn_over)):
            exchange.progress = refusals
            raise TurnOver
        if refusals.refused_any and session.is_durable:
            exchange.waits_for_store = True
        if session.held_connect is not None and session.queue.count:
            # The verdicts may have settled whatever blocked the queue.
            self._hub.make_ready(session)
