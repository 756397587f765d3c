"""Lets requests to the application begin a few at a time.

To begin one takes a millisecond or two. When many answers come together, as many questions get
their places in one turn of the event loop, and everybody else would wait for all of them.
"""

import asyncio
from collections import deque
from typing import Final

_TOGETHER: Final = 4
_PAUSE_S: Final = 0.002


class Steps:
    """Gives turns in the order of calls: a few, and more after a pause."""

    def __init__(self) -> None:
        self._left = _TOGETHER
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pause: asyncio.TimerHandle | None = None

    async def next(self) -> None:
        """Wait for a turn."""
        if self._left and not self._waiting:
            self._take()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _take(self) -> None:
        self._left -= 1
        if self._pause is None:
            self._pause = asyncio.get_running_loop().call_later(_PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._left = _TOGETHER
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self._take()
                turn.set_result(None)
