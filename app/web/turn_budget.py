"""Limits how long one turn of the event loop may take."""

from collections.abc import Callable
from time import monotonic, thread_time
from typing import Protocol

# Beyond this, others are served. Reading and sending each have this budget; what goes on from
# earlier turns, and the store, have a share. It counts processor time, so that other programs on a
# busy machine do not shorten turns and make bursts arrive in more pieces.
_TURN_S = 0.005
# Before a turn has taken this part of its budget, by the time of day, nobody reads the other clock.
_FREE = 1 / 8
# Small requests go on for so long after it: to let one wait costs half of handling it, and a
# thousand clients that reconnect after a message should not have to.
_PATIENCE_S = 0.020


class Turn(Protocol):
    """What those who divide work into turns ask a budget. Tests decide about the answers."""

    # Whether everybody who asks must stop after the present step: many others wait.
    is_hurried: bool
    # Whether small requests have had to wait in this turn: connects are not even read any more.
    is_behind: bool

    def is_spent(self) -> bool:
        """Return whether the time of this turn is over."""
        ...

    def is_late(self) -> bool:
        """Return whether small requests must stop, too."""
        ...

    def is_overdue(self) -> bool:
        """Return whether the turn goes on although everything new waits."""
        ...

    def begin_late(self) -> None:
        """Let what is read from now on in this turn wait."""
        ...

    def begin_anew(self, turn_s: float = _TURN_S) -> None:
        """Give those who ask from now on the whole budget, or this part of it."""
        ...

    def send(self) -> None:
        """Send the replies so far."""
        ...


class TurnBudget:
    """Says when work should continue in a later turn; all askers of one turn share its time.

    Everybody asks, for each message, but reading the processor time is a system call. So it is read
    only in turns that have taken some time, and again only when the turn could be over.

    Args:
        end_turn_soon: Asks for an end of the turn, which lets the budget begin anew.
        send: Sends the replies so far, when not everything that has arrived is read yet.
    """

    def __init__(self, end_turn_soon: Callable[[], None], send: Callable[[], None]) -> None:
        self._end_turn_soon = end_turn_soon
        self._send = send
        # When somebody first asked in this turn, by the time of day.
        self._began_at: float | None = None
        # When the budget ends, by processor time; None until the turn has taken some time.
        self._ends_at: float | None = None
        self._turn_s = _TURN_S
        # How long small requests go on after the budget of this turn.
        self._patience_s = _PATIENCE_S
        self.is_hurried = False
        self.is_behind = False

    def is_over(self) -> bool:
        """Return whether whoever asks must stop."""
        return self.is_hurried or self.is_spent()

    def is_spent(self) -> bool:
        """Return whether the time of this turn is over."""
        began_at = self._began_at
        if began_at is None:
            self._began_at = monotonic()
            self._end_turn_soon()
            return False
        took = monotonic() - began_at
        if took < self._turn_s * _FREE:
            return False
        if self._ends_at is None:
            # Less may be left because of other programs alone.
            self._ends_at = thread_time() + max(0.0, self._turn_s - took)
        return took > self._turn_s and thread_time() >= self._ends_at

    def is_late(self) -> bool:
        """Return whether small requests must stop, too."""
        if self._ends_at is None:
            self.is_spent()
        began_at = self._began_at
        if began_at is None or monotonic() - began_at <= self._turn_s + self._patience_s:
            return False
        self.is_behind = self._has_gone_on_for(self._patience_s)
        return self.is_behind

    def is_overdue(self) -> bool:
        """Return whether the turn goes on although everything new waits."""
        return self._has_gone_on_for(self._patience_s + _TURN_S)

    def _has_gone_on_for(self, seconds: float) -> bool:
        return self._ends_at is not None and thread_time() >= self._ends_at + seconds

    def begin_late(self) -> None:
        """Let what is read from now on in this turn wait."""
        self.begin_anew(0.0)
        self._patience_s = 0.0
        self.is_behind = True

    def begin_anew(self, turn_s: float = _TURN_S) -> None:
        """Give those who ask from now on the whole budget, or this part of it."""
        self._began_at = self._ends_at = None
        self._turn_s = turn_s
        self._patience_s = _PATIENCE_S
        self.is_behind = False

    def send(self) -> None:
        """Send the replies so far."""
        self._send()
