"""When the turns end in which this shard has something for others."""

import asyncio
from collections.abc import Callable
from typing import Final

from holdfast.store.framing.spacing import Spacing

# How much a frame has to have to follow at once.
MANY: Final = 8


class Pace:
    """Calls `end_turn` once after `wake`: at the end of the turn, or later if it calls it often.

    Args:
        loop: Tells the time, and calls back.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, end_turn: Callable[[], None]) -> None:
        self._loop = loop
        self._end_turn = end_turn
        # How often it was woken since the last call, which ends the turn later if it must wait.
        self._woken = 0
        self._waiting: asyncio.TimerHandle | None = None
        self._spacing = Spacing()

    def wake(self) -> None:
        """Let `end_turn` be called."""
        self._woken += 1
        if self._woken == 1:
            if self._loop.time() < self._spacing.due:
                self._waiting = self._loop.call_at(self._spacing.due, self._end)
            else:
                self._loop.call_soon(self._end)
        elif self._woken == MANY and self._waiting is not None:
            self._waiting.cancel()
            self._loop.call_soon(self._end)

    def _end(self) -> None:
        self._spacing.take(self._loop.time())
        if self._waiting is not None:
            self._spacing.waited(is_useful=self._woken > 1)
        self._woken, self._waiting = 0, None
        self._end_turn()
