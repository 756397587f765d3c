"""Whether a host may use its name: a second one of the same name is refused."""

from collections.abc import Callable
from typing import Final

from holdfast.hosts.rows import HostRow
from holdfast.store.opening.lease import LEASE_S, RivalLease

# How often the row of another process must move: a process of this host that has just ended may
# have written once more.
_MOVES: Final = 2


class OwnName:
    """Watches the row under the name of this host.

    A process that starts writes no row as long as another one does, and so never disturbs a host
    that serves. If two started at once, the one with the greater nonce goes.

    Args:
        nonce: No other host's process has it.
        clock: Must not stop while the process or the machine does.
    """

    def __init__(self, nonce: str, clock: Callable[[], float]) -> None:
        self._nonce = nonce
        self._clock = clock
        self._other = RivalLease(clock)
        self._last: HostRow | None = None
        self._moves = 0
        # Whether the row may be written.
        self.is_ours = False
        # Whether another process uses this name, and this one must end.
        self.is_taken = False

    def saw(self, row: HostRow | None) -> None:
        """Take note of the row, as it was before this host wrote its own in the same look."""
        if row is None or row.nonce == self._nonce:
            self.is_ours = True
            return
        if self._last is not None and self._last != row:
            self._moves += 1
        self._last = row
        self._other.saw(row.sign)
        if self._moves >= _MOVES and (not self.is_ours or row.nonce < self._nonce):
            self.is_taken = True
        elif self._other.stood_s >= LEASE_S:
            self.is_ours = True
