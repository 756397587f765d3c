"""When the turns end in which this shard has something for others."""

import asyncio
from collections.abc import Callable
from typing import Final

# How soon a frame follows another one. Each costs its writer a call and each reader a turn, which
# is more than a small message costs.
PAUSE_S: Final = 0.005


class Pace:
    """Calls `end_turn` once after `wake`: at the end of the turn, or some time after the last call.

    Args:
        loop: Tells the time, and calls back.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, end_turn: Callable[[], None]) -> None:
        self._loop = loop
        self._end_turn = end_turn
        self._is_awake = False
        # When the next call may come.
        self._next_at = 0.0

    def wake(self) -> None:
        """Let `end_turn` be called."""
        if self._is_awake:
            return
        self._is_awake = True
        if self._loop.time() < self._next_at:
            self._loop.call_at(self._next_at, self._end)
        else:
            self._loop.call_soon(self._end)

    def _end(self) -> None:
        self._is_awake = False
        self._next_at = self._loop.time() + PAUSE_S
        self._end_turn()
