"""Requests of the aiohttp front end that wait for a turn with time to begin."""

import asyncio
from collections import deque
from typing import Final

# How many of each kind begin together. Each is a task that runs later.
_MOST: Final = 8
# How many entries of clients that have left may stay.
_MANY: Final = 1000


class Beginnings:
    """Lets requests of one kind begin in order, a few in a turn."""

    def __init__(self) -> None:
        self._turns: deque[asyncio.Future[None]] = deque()
        # How many have not begun although their turn may have come.
        self.waiting = 0
        # How many have begun in this turn.
        self._begun = 0

    def __len__(self) -> int:
        """Return how many have no turn yet, some of which may have left."""
        return len(self._turns)

    def begins_at_once(self) -> bool:
        """Return whether one more request begins in this turn, although its time is spent.

        Those that would begin together in the next turn need not wait for it.
        """
        if self.waiting or self._begun == _MOST:
            return False
        if not self._begun:
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._end_turn)
        self._begun += 1
        return True

    def _end_turn(self) -> None:
        self._begun = 0

    async def wait(self) -> None:
        """Wait until `let_begin` lets this request begin."""
        turn = asyncio.get_running_loop().create_future()
        if len(self._turns) > 2 * self.waiting + _MANY:
            # Other clients have left, and during a silence no turn removes their entries.
            self._turns = deque(each for each in self._turns if not each.done())
        self._turns.append(turn)
        self.waiting += 1
        try:
            await turn
        finally:
            self.waiting -= 1

    def let_begin(self) -> None:
        """Let the next few begin."""
        for _ in range(min(_MOST, len(self._turns))):
            turn = self._turns.popleft()
            if not turn.done():
                # Otherwise its client has left.
                turn.set_result(None)
