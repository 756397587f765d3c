"""Limits how long one turn of the event loop may take."""

import asyncio
from time import thread_time

# Beyond this, others are served. Reading and sending each have this budget, the store a share.
# It counts processor time, so that other programs on a busy machine do not shorten turns and make
# bursts arrive in more pieces.
_TURN_S = 0.005


class TurnBudget:
    """Says when work should continue in a later turn; all askers of one turn share its time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # When the budget ends; None until somebody asks in this turn.
        self._ends_at: float | None = None

    def is_over(self) -> bool:
        now = thread_time()
        if self._ends_at is None:
            self._ends_at = now + _TURN_S
            self._loop.call_soon(self._begin_anew)
        return now > self._ends_at

    def _begin_anew(self) -> None:
        self._ends_at = None
