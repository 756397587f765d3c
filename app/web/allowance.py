"""How long one turn of the event loop may take."""

import asyncio
from time import thread_time

# Beyond this, others have their turn. Reading and telling each have as much, the store a share.
# It is time of the processor: what other programs take of it makes no turn shorter, or a burst
# would come in more pieces just when the machine is busy.
_TURN_S = 0.005


class Allowance:
    """Says when work that can go on later should; what is asked in one turn shares its time."""

    def __init__(self, turn_s: float = _TURN_S) -> None:
        self._loop = asyncio.get_running_loop()
        self._turn_s = turn_s
        # When the time is over; none: nobody has asked in this turn.
        self._ends_at: float | None = None

    def is_over(self) -> bool:
        now = thread_time()
        if self._ends_at is None:
            self._ends_at = now + self._turn_s
            self._loop.call_soon(self._begin_anew)
        return now > self._ends_at

    def _begin_anew(self) -> None:
        self._ends_at = None
