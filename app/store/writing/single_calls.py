"""Calls that belong to no turn: what single callers ask for, and whether messages are accepted."""

import asyncio
from collections.abc import Callable
from functools import partial

from holdfast.delivery.basics.ignoring import ignore
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.publish_keys import StoreClock
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.link import StoreLink, set_answer
from holdfast.store.links.write_refusals import WriteRefusals
from holdfast.store.opening.write_right import StoreState, WriteRight
from holdfast.store.writing.turn_writer import TurnWriter
from holdfast.store.writing.unanswered_calls import UnansweredCalls

# How far the store's clock may lag behind after a kill. An idle server writes no more often.
_STEP_S = 10
# How far the id that is written is ahead: until the next one is written, which is a second later,
# messages get ids below it.
_AHEAD_NS = 1_500_000_000


class SingleCalls:
    """Makes calls behind all writes so far, with someone who waits for the answer or without.

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
            self._calls.make(call, ignore)
            self._link.flush()
        elif self._right.state is not StoreState.FENCED:
            self._waiting.append(call)

    def post_waiting(self) -> None:
        """Make the calls that waited."""
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self.post(call)


class Probing:
    """Advances the clock in the store. A store without memory refuses even that.

    With the clock goes an id above all that were given, also to messages that are not stored: the
    next process begins above it, even if the wall clock was set back.

    Args:
        stamp: Returns a new id.
    """

    def __init__(
        self,
        calls: UnansweredCalls,
        keys: RedisKeys,
        clock: StoreClock,
        refusing: WriteRefusals,
        stamp: Callable[[], int],
    ) -> None:
        self._stamp = stamp
        self._loop = asyncio.get_running_loop()
        self._answered_at = self._loop.time()
        self._calls = calls
        self._keys = keys
        self._clock = clock
        self._refusing = refusing
        self._is_probing = False

    def probe(self) -> None:
        """Ask whether the store would accept a message, unless it is being asked."""
        if not self._is_probing:
            self._is_probing = True
            clock = self._clock()
            given = self._stamp() + _AHEAD_NS
            self._advance(clock - clock % _STEP_S, given, self._probed)

    def answered_at(self) -> float:
        """Return when the store last answered; what it may lose ages by this time."""
        return self._answered_at

    def write_clock(self) -> None:
        """Write the exact time and id, from which the next process continues."""
        self._advance(self._clock(), self._stamp(), ignore)

    def _advance(self, clock: int, given: int, done: Callable[[object], None]) -> None:
        call = scripts.advance_clock(self._keys, clock, given=given)
        self._calls.make(call, done, may_be_refused=True)

    def _probed(self, reply: object) -> None:
        self._is_probing = False
        self._answered_at = self._loop.time()
        self._refusing.hear(reply, 0)
