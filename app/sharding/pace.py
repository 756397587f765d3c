"""When the turns end in which this shard has something for others."""

import asyncio
from collections.abc import Callable
from typing import Final

# How soon a frame follows another one. Each costs its writer a call and each reader a turn, which
# is more than a small message costs.
PAUSE_S: Final = 0.008
# How much a frame has to have to follow at once.
MANY: Final = 8


class Pace:
    """Calls `end_turn` once after `wake`: at the end of the turn, or some time after the last call.

    Args:
        loop: Tells the time, and calls back.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, end_turn: Callable[[], None]) -> None:
        self._loop = loop
        self._end_turn = end_turn
        # How often it was woken since the last call, which ends the turn later if it must wait.
        self._woken = 0
        self._waiting: asyncio.TimerHandle | None = None
        # When the next call may come.
        self._next_at = 0.0

    def wake(self) -> None:
        """Let `end_turn` be called."""
        self._woken += 1
        if self._woken == 1:
            if self._loop.time() < self._next_at:
                self._waiting = self._loop.call_at(self._next_at, self._end)
            else:
                self._loop.call_soon(self._end)
        elif self._woken == MANY and self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
            self._loop.call_soon(self._end)

    def _end(self) -> None:
        self._woken, self._waiting = 0, None
        self._next_at = self._loop.time() + PAUSE_S
        self._end_turn()
