"""Losses that no server can notice: replies to receivers without acks, over silent connections."""

from tests.chaos.history import Operation, Phase
from tests.chaos.ledger import Ledger
from tests.chaos.records import Copy, Delivery

# The server hears nothing of a connection's end while one of these lasts.
SILENT = frozenset({"black hole", "nothing reaches the server", "nothing reaches the clients"})
RESTARTS = frozenset({"kill server", "restart server", "lose power"})


class Silence:
    """Receivers without acks over silent connections, which get lost replies again only late."""

    def __init__(self, ledger: Ledger) -> None:
        self._publishes = ledger.publishes
        self._first: dict[Copy, Delivery] = {}
        for delivery in ledger.deliveries:
            self._first.setdefault(delivery.copy, delivery)
        silent = [fault for fault in ledger.faults if fault.kind in SILENT]
        self._restarts = [fault for fault in ledger.faults if fault.kind in RESTARTS]
        self._unanswered = [
            connect
            for connect in ledger.connects
            if connect.outcome is Phase.INFO
            and any(
                fault.begun_ns <= connect.last_ns and fault.ended_ns >= connect.begun_ns
                for fault in silent
            )
        ]

    def hid(self, late: Copy, other: Copy) -> bool:
        """Whether the late message may have been in a lost answer when the other was delivered."""
        overtaking = self._first.get(other)
        if overtaking is None or overtaking.timeout_ns is None:
            return False
        published_ns = self._publishes[late.tag].begun_ns
        return any(
            connect.process == late.subscriber
            and published_ns <= connect.last_ns
            and connect.begun_ns <= overtaking.asked_ns
            and not self._restarted(connect, overtaking.asked_ns)
            for connect in self._unanswered
        )

    def _restarted(self, connect: Operation, until_ns: int) -> bool:
        """Whether the server restarted, after which it redelivers everything in flight."""
        return any(
            connect.begun_ns <= fault.begun_ns and fault.ended_ns <= until_ns
            for fault in self._restarts
        )
