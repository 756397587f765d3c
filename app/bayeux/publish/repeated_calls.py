"""Calls that are repeated until they are answered, or until no one needs the answer."""

from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.bayeux.state.calls import Answer, Asking, Calls
from holdfast.delivery.requests.request import Request


class _Call(NamedTuple):
    request: Request[Any]
    shard: int
    operation: str
    asked: Asking
    answered: Callable[[Answer], None]


class RepeatedCalls:
    """Calls about requests, each repeated until it is answered or its request has ended.

    An operation may be carried out more than once.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._again: list[_Call] = []

    def __len__(self) -> int:
        return len(self._again)

    def ask(
        self,
        request: Request[Any],
        shard: int,
        operation: str,
        asked: Asking,
        *,
        answered: Callable[[Answer], None],
    ) -> None:
        """Ask another shard, now or soon. `answered` hears the answer."""
        self._ask(_Call(request, shard, operation, asked, answered))

    def _ask(self, call: _Call) -> None:
        def heard(answer: Answer | None) -> None:
            if answer is None:
                self._again.append(call)
            elif call.request.end is None:
                call.answered(answer)

        self._calls.ask(call.shard, call.operation, call.asked, heard)

    def tick(self) -> None:
        """Repeat calls that had no answer."""
        again, self._again = self._again, []
        for each in again:
            if each.request.end is None:
                self._ask(each)
