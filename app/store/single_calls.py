"""Calls that belong to no turn. They are made behind all writes so far."""

import asyncio
from collections.abc import Callable
from functools import partial

from holdfast.store.connection import StoreUnavailable
from holdfast.store.link import StoreLink, ignore_answer, set_answer
from holdfast.store.scripts import ScriptCall
from holdfast.store.turn_writer import TurnWriter
from holdfast.store.unanswered_calls import UnansweredCalls
from holdfast.store.write_right import StoreState, WriteRight


class SingleCalls:
    """Makes them, with someone who waits for the answer or without.

    Args:
        remember: Called with what was carried out, in case that the store loses it.
    """

    def __init__(
        self,
        link: StoreLink,
        right: WriteRight,
        calls: UnansweredCalls,
        writer: TurnWriter,
        *,
        remember: Callable[[ScriptCall], None],
    ) -> None:
        self._link = link
        self._right = right
        self._calls = calls
        self._writer = writer
        self._remember = remember
        self._loop = asyncio.get_running_loop()
        # Calls that came while the store could not be written to.
        self._waiting: list[ScriptCall] = []

    async def run(self, call: ScriptCall, *, timeout_s: float | None) -> object:
        """Make a call and return its answer. Raises `StoreUnavailable`."""
        await self._writer.sent()
        self._writer.send_all()
        if not (self._right.state is StoreState.OPEN and self._link.has_room):
            raise StoreUnavailable("the store is unavailable")
        answer: asyncio.Future[object] = self._loop.create_future()
        self._calls.make(call, partial(set_answer, answer), may_be_refused=True)
        self._link.flush()
        try:
            reply = await asyncio.wait_for(answer, timeout_s)
        except TimeoutError as error:
            raise StoreUnavailable(
                "the store does not answer; the change may still take effect"
            ) from error
        if isinstance(reply, Exception):
            raise StoreUnavailable(f"the store refused the change: {reply}") from reply
        self._remember(call._replace(args=call.args[1:]))
        return reply

    def post(self, call: ScriptCall) -> None:
        """Make a call without waiting for its answer."""
        self._writer.send_behind(partial(self._post, call))

    def _post(self, call: ScriptCall) -> None:
        if self._right.may_write:
            self._calls.make(call, ignore_answer)
            self._link.flush()
        elif self._right.state is not StoreState.FENCED:
            self._waiting.append(call)

    def post_waiting(self) -> None:
        """Make the calls that waited."""
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self.post(call)
