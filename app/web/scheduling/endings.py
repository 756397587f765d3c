"""Ends connections, requests and sockets that time out or are lost, a few at a time."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

log = logging.getLogger(__name__)

# How many one turn of the event loop ends: each may take a third of a millisecond.
_MOST_IN_TURN = 16


class Endings:
    """Calls functions that end a connection, a request or a socket, in order, over several turns.

    The event loop calls all timers that are due in one turn, and ten thousand connections opened
    together time out together. An `end` function must check whether its connection still has to
    end.
    """

    def __init__(self) -> None:
        self._due: deque[Callable[[], object]] = deque()
        # How many have been ended at once in this turn.
        self._at_once = 0

    def add(self, end: Callable[[], object]) -> None:
        """Call `end` in this turn or a later one."""
        if not self._due:
            self._go_on_soon()
        self._due.append(end)

    def end(self, end: Callable[[], object]) -> None:
        """Call `end` at once, or in a later turn if many end in this one."""
        if not self.puts_off(end):
            end()

    def puts_off(self, end: Callable[[], object]) -> bool:
        """Return whether `end` is called in a later turn because many end in this one."""
        if self._due or self._at_once >= _MOST_IN_TURN:
            self.add(end)
            return True
        if not self._at_once:
            asyncio.get_running_loop().call_soon(self._begin_turn)
        self._at_once += 1
        return False

    def _begin_turn(self) -> None:
        self._at_once = 0

    @asynccontextmanager
    async def timeout_at(self, due: float) -> AsyncIterator[None]:
        """Raise `TimeoutError` if the block takes longer than until this time of the event loop."""
        async with asyncio.timeout(None) as limit:
            loop = asyncio.get_running_loop()
            timer = loop.call_at(due, self.add, lambda: _expire(limit))
            try:
                yield
            finally:
                timer.cancel()

    def _go_on_soon(self) -> None:
        loop = asyncio.get_running_loop()
        # Two callbacks later, so that data read in the meantime is handled in between.
        loop.call_soon(loop.call_soon, self._go_on)

    def _go_on(self) -> None:
        for _ in range(min(_MOST_IN_TURN, len(self._due))):
            end = self._due.popleft()
            try:
                end()
            except Exception:
                log.exception("something could not be ended")
        if self._due:
            self._go_on_soon()


def _expire(limit: asyncio.Timeout) -> None:
    # It may have ended in the meantime.
    with suppress(RuntimeError):
        limit.reschedule(0.0)
