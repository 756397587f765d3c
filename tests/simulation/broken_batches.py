"""Servers that are broken where a part of a request, or of a batch, is refused."""

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from holdfast.bayeux import exchanges
from holdfast.bayeux.wire.errors import Refused
from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.messages.verdicts import Refusals, Verdict
from holdfast.delivery.settling.failures import Failures
from holdfast.delivery.settling.settlement import Settlement
from tests.simulation.breaking import by_name, replace


def a_refusal_is_for_the_rest_of_the_request(stack: ExitStack) -> None:
    carry_out, refuse = exchanges._carry_out, exchanges._refuse
    last: list[tuple[Any, Refused]] = []

    def refused(bayeux: Any, error: Refused, **given: Any) -> None:
        last[:] = [(given["exchange"], error)]
        refuse(bayeux, error, **given)

    def carried_out(*parts: Any, exchange: Any, **given: Any) -> bool:
        for its, error in last:
            if its is exchange:
                raise error
        return carry_out(*parts, exchange=exchange, **given)

    replace(stack, exchanges, "_refuse", refused)
    replace(stack, exchanges, "_carry_out", carried_out)


def one_refusal_of_a_batch_counts(stack: ExitStack) -> None:
    """The ack of the batch is for the others."""
    settle = Settlement.settle_confirmed

    def first(self: Any, receiver: Any, verdicts: Iterable[Verdict], now: float) -> Refusals:
        found = settle(self, receiver, verdicts, now)
        return Refusals([*found.rest][:1])

    replace(stack, Settlement, "settle_confirmed", first)


def acks_are_for_what_is_behind_a_retry(stack: ExitStack) -> None:
    """A receiver that wants a message later gets that one alone again."""
    back = Failures._return_from

    def alone(self: Any, receiver: Any, refused: Any, code: ErrorCode, now: float) -> Any:
        queue = receiver.queue
        queue.settle(dict.fromkeys(seq for seq in [*queue.in_flight()] if seq > refused.seq))
        return back(self, receiver, refused, code, now)

    replace(stack, Failures, "_return_from", alone)


BUILDS_OF_BATCHES = by_name(
    a_refusal_is_for_the_rest_of_the_request,
    one_refusal_of_a_batch_counts,
    acks_are_for_what_is_behind_a_retry,
)
