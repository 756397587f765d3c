"""Limits how long one turn of the event loop may take."""

from collections.abc import Callable
from time import monotonic, thread_time

# Beyond this, others are served. Reading and sending each have this budget; what goes on from
# earlier turns, and the store, have a share. It counts processor time, so that other programs on a
# busy machine do not shorten turns and make bursts arrive in more pieces.
_TURN_S = 0.005


class TurnBudget:
    """Says when work should continue in a later turn; all askers of one turn share its time.

    Everybody asks, for each message, but reading the processor time is a system call. So it is not
    read for the first asker of a turn, who is often the only one, nor before the turn could be over
    by the time of day.

    Args:
        in_next_turn: Calls something when the next turn begins.
    """

    def __init__(self, in_next_turn: Callable[[Callable[[], None]], object]) -> None:
        self._in_next_turn = in_next_turn
        # When somebody first asked in this turn, by the time of day.
        self._began_at: float | None = None
        # When the budget ends, by processor time; None until somebody asks again.
        self._ends_at: float | None = None
        self._turn_s = _TURN_S
        # Whether everybody who asks must stop after the present step: many others wait.
        self.is_hurried = False

    def is_over(self) -> bool:
        """Return whether whoever asks must stop."""
        return self.is_hurried or self.is_spent()

    def is_spent(self) -> bool:
        """Return whether the time of this turn is over."""
        now = monotonic()
        began_at = self._began_at
        if began_at is None:
            self._began_at = now
            self._in_next_turn(self.begin_anew)
            return False
        took = now - began_at
        if self._ends_at is None:
            self._ends_at = thread_time() + max(0.0, self._turn_s - took)
        return took > self._turn_s and thread_time() >= self._ends_at

    def begin_anew(self, turn_s: float = _TURN_S) -> None:
        """Give those who ask from now on the whole budget, or this part of it."""
        self._began_at = self._ends_at = None
        self._turn_s = turn_s
