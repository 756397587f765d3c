"""Limits how long one turn of the event loop may take."""

from collections.abc import Callable
from math import inf
from time import monotonic, thread_time
from typing import Protocol

from holdfast.delivery.basics.times import NS_PER_S, STEPS_S, Histogram

# Beyond this, other work runs. Reading and sending each have this budget; work from earlier turns,
# and the store, have a share. It counts processor time, so that other programs on a busy machine do
# not shorten turns and split bursts into more pieces.
_TURN_S = 0.005
# Before a turn has taken this part of its budget, by wall time, the other clock is not read.
_FREE = 1 / 8
# Small requests continue for this long after it: making one wait costs half of handling it, and a
# thousand clients that reconnect after a message should not have to wait.
_PATIENCE_S = 0.015
# To read what a connection has sent, and to put it aside, takes about this long. If all send
# together, a turn is not to take longer than this: the more connections, the less patience.
_READING_S, _LONGEST_S = 0.000011, 0.045
# They do not if the average one of this turn takes longer than this, twenty times as long as making
# one wait. The longest does not count: after a publish to a thousand clients, all connect again.
_DEAR_S = 0.0002
# Their replies so far leave after the first of these times, and then each time after the second. To
# write them takes nearly as long as to handle the requests, and must not all follow at the end.
_SEND_EARLY_S, _SEND_AGAIN_S = 0.010, 0.005


class Turn(Protocol):
    """The turn budget, as seen by code that divides work into turns. Tests control its answers."""

    # Whether all work must stop after the current step, because many clients wait.
    is_hurried: bool
    # Whether small requests have had to wait in this turn. If so, connects are not even read.
    is_behind: bool
    # How many connections are open.
    connections: int

    def is_spent(self) -> bool:
        """Return whether the time of this turn is over."""
        ...

    def is_late(self) -> bool:
        """Return whether small requests must stop, too; sends replies early if a turn is long.

        Call it once for each small request.
        """
        ...

    def is_overdue(self) -> bool:
        """Return whether replies should no longer wait for the end of the turn."""
        ...

    def begin_late(self) -> None:
        """Make data read from now on in this turn wait."""
        ...

    def begin_anew(self, turn_s: float = _TURN_S) -> None:
        """Give later callers the whole budget, or this part of it."""
        ...

    def send(self) -> None:
        """Send the replies so far."""
        ...


class TurnBudget:
    """Decides when work should continue in a later turn. All callers in one turn share its time.

    There is one call for each message, but reading the processor time is a system call. So it is
    read only in turns that have taken some time, and again only when the turn could be over.

    Args:
        end_turn_soon: Schedules the end of the turn, after which the budget starts again.
        send: Sends the replies so far, when not all arrived data is read yet.
    """

    def __init__(self, end_turn_soon: Callable[[], None], send: Callable[[], None]) -> None:
        self._end_turn_soon = end_turn_soon
        self._send = send
        # When the first call in this turn was made, in wall time.
        self._began_at: float | None = None
        # When the first call since the end of the last turn was made, zero before it, and how long
        # turns have taken from there to their end.
        self._first_at = 0.0
        self.times = Histogram(STEPS_S)
        # When the budget ends, by processor time; None until the turn has taken some time.
        self._ends_at: float | None = None
        self._turn_s = _TURN_S
        # The number of small requests in this turn, when the last one came, and the longest time
        # between two of them, by wall time.
        self._small = 0
        self._took_s = self._longest_s = 0.0
        # How long small requests continue after the budget of this turn.
        self.connections = 0
        self._patience_s = _PATIENCE_S
        # After this time, by wall time, the replies so far leave early.
        self._send_early_s = _SEND_EARLY_S
        # How long after the budget replies wait for the end of the turn.
        self._overdue_s = _PATIENCE_S
        self.is_hurried = False
        self.is_behind = False

    def is_over(self) -> bool:
        """Return whether the caller must stop."""
        return self.is_hurried or self.is_spent()

    def is_spent(self) -> bool:
        """Return whether the time of this turn is over."""
        if self.is_behind:
            return True
        began_at = self._began_at
        if began_at is None:
            self._began_at = began_at = monotonic()
            if not self._first_at:
                self._first_at = began_at
            self._end_turn_soon()
            return False
        took = monotonic() - began_at
        if took < self._turn_s * _FREE:
            return False
        if self._ends_at is None:
            # Less may be left only because of other programs.
            self._ends_at = thread_time() + max(0.0, self._turn_s - took)
        return took > self._turn_s and thread_time() >= self._ends_at

    def is_late(self) -> bool:
        """Return whether small requests must stop, too; sends replies early if a turn is long.

        Call it once for each small request.
        """
        self._small += 1
        if self._ends_at is None:
            self.is_spent()
        if self._began_at is None:
            return False
        took = monotonic() - self._began_at
        self._longest_s = max(self._longest_s, took - self._took_s)
        self._took_s = took
        if took <= self._turn_s:
            return False
        if self._patience_s and self._is_dear(took):
            self._patience_s = 0.0
        if took > self._send_early_s:
            self._send()
            self._send_early_s = monotonic() - self._began_at + _SEND_AGAIN_S
        if took <= self._turn_s + self._patience_s:
            return False
        self.is_behind = self._has_gone_on_for(self._patience_s)
        return self.is_behind

    def _is_dear(self, took: float) -> bool:
        """Return whether the average small request of this turn takes long."""
        cheap_s = self._small * _DEAR_S + self._longest_s
        return took > cheap_s and self._has_gone_on_for(max(0.0, cheap_s - self._turn_s))

    def is_overdue(self) -> bool:
        """Return whether replies should no longer wait for the end of the turn."""
        # Processor time does not pass faster: mostly there is no need to read it.
        if self._began_at is None or monotonic() - self._began_at < self._overdue_s:
            return False
        return self._has_gone_on_for(self._overdue_s)

    def _has_gone_on_for(self, seconds: float) -> bool:
        return self._ends_at is not None and thread_time() >= self._ends_at + seconds

    def begin_late(self) -> None:
        """Make data read from now on in this turn wait."""
        self.begin_anew(0.0)
        # The time of a turn begins when it is asked for.
        self.is_spent()
        self._ends_at = thread_time()
        self._send_early_s, self._patience_s, self._overdue_s = inf, 0.0, _TURN_S
        self.is_behind = True

    def begin_anew(self, turn_s: float = _TURN_S) -> None:
        """Give later callers the whole budget, or this part of it."""
        self._began_at = self._ends_at = None
        self._turn_s = turn_s
        self._small = 0
        self._took_s = self._longest_s = 0.0
        self._send_early_s = _SEND_EARLY_S
        left_s = _LONGEST_S - _TURN_S - self.connections * _READING_S
        self._patience_s = self._overdue_s = min(max(left_s, 0.0), _PATIENCE_S)
        self.is_behind = False

    def end(self) -> None:
        """End the turn: its replies are sent."""
        first_at = self._first_at
        if first_at:
            self._first_at = 0.0
            self.times.add(int((monotonic() - first_at) * NS_PER_S))
        self.begin_anew()

    def forget(self) -> None:
        """Do not count the time of this turn: it has to wait before it ends."""
        self._first_at = 0.0

    def send(self) -> None:
        """Send the replies so far."""
        self._send()
