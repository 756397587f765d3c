"""Judges whether a server speaks for its sessions without a lease (S2), also where no rival does.

It sees what servers write and read: a lease is in force for so long, by the server's own clock,
since the newest raise was sent behind which the store has answered anything on that connection.
(Whether that answer confirms the raise only the server knows.)
"""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from tests.simulation.network import End, Place
from tests.simulation.process import Process

if TYPE_CHECKING:
    from collections.abc import Callable

# What is in each raise, and what in each reply that shows, accepts or settles something.
RAISE = b"Raises the lease"
_SAYS = (b'"successful":true', b'"data":')
# How long a lease is in force, and a turn at most in which that was checked.
_SPEAK_S, _TURN_S = 2.5, 0.25
_MOST_TOLD = 10


@dataclass(slots=True)
class _Lease:
    """When raises were sent, by the server's boot clock: the newest one, and one with an answer."""

    end: End
    sent_at: float
    answered: float = -inf


class Leases:
    """Collects what servers write and read.

    Args:
        clients: The machine of all clients.
    """

    def __init__(self, clients: str) -> None:
        self._clients = clients
        # Whether a server without a lease is silent.
        self.are_needed = True
        self._leases: dict[Process, _Lease] = {}
        # Which session has a connection, by the client's end.
        self._sessions: dict[Place, str] = {}
        # Returns which server has the session with a client id.
        self.home_of: Callable[[str], Process | None] = lambda _: None
        # Returns whether a server speaks for its sessions by what it writes to a connection.
        self.speaks: Callable[[Process, End], bool] = self._is_home
        self.violations: list[str] = []
        self.judged = 0

    def uses(self, place: Place, client_id: str) -> None:
        """Note that a client uses this connection for its session."""
        self._sessions[place] = client_id

    def wrote(self, process: Process, end: End, data: bytes) -> None:
        """Note what a server writes to a store, or judge what it writes to a client."""
        if RAISE in data:
            answered = self._leases[process].answered if process in self._leases else -inf
            self._leases[process] = _Lease(end, process.boot(), answered)
        elif self.are_needed and any(map(data.__contains__, _SAYS)) and self.speaks(process, end):
            self._judge(process, end)

    def session_at(self, end: End) -> str:
        """Return the id of the session whose client has the other end; empty if none has."""
        return self._sessions.get(end.peer.name, "") if end.peer.name[0] == self._clients else ""

    def _is_home(self, process: Process, end: End) -> bool:
        client_id = self.session_at(end)
        return client_id != "" and self.home_of(client_id) is process

    def read(self, process: Process, end: End, _: bytes) -> None:
        """Note that a server has read something."""
        lease = self._leases.get(process)
        if lease is not None and lease.end is end:
            lease.answered = lease.sent_at

    def _judge(self, process: Process, end: End) -> None:
        self.judged += 1
        lease, now = self._leases.get(process), process.boot()
        since = -inf if lease is None else lease.answered
        if now - since > _SPEAK_S + _TURN_S and len(self.violations) < _MOST_TOLD:
            self.violations.append(
                f"S2: process {process.pid} speaks at {process.world.now:.3f} on {end.label}, "
                f"{now - since:.3f} s after it sent the last raise that may be confirmed"
            )
