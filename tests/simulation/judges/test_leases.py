"""When a server speaks without a lease."""

from typing import Any

import pytest

from tests.simulation.judges.leases import RAISE, Leases

CLIENTS, REPLY = "clients", b'[{"successful":true}]'


class Peer:
    def __init__(self, host: str) -> None:
        self.name = (host, 1)


class End:
    label = "end"

    def __init__(self, host: str) -> None:
        self.peer = Peer(host)


class Server:
    """A server, and its connections to a client and to the store."""

    pid = 7

    def __init__(self) -> None:
        self.now = 10.0
        self.world = self
        self.store, self.client = End("store"), End(CLIENTS)
        self.leases = Leases(CLIENTS)
        self.leases.home_of = lambda _: self  # type: ignore[assignment,return-value]
        self.leases.uses((CLIENTS, 1), "session")

    def boot(self) -> float:
        return self.now

    def raises(self, *, answered: bool) -> None:
        server: Any = self
        self.leases.wrote(server, server.store, b"-- " + RAISE)
        if answered:
            self.leases.read(server, server.store, b"1")

    def speaks(self, after_s: float) -> bool:
        """Speak, and return whether that was right."""
        server: Any = self
        self.now += after_s
        self.leases.wrote(server, server.client, REPLY)
        return not self.leases.violations


@pytest.mark.parametrize(("after_s", "is_right"), [(2.4, True), (2.9, False)])
def test_a_lease_is_in_force_for_a_time_after_the_raise_was_sent(
    after_s: float, is_right: bool
) -> None:
    server = Server()
    server.raises(answered=True)
    assert server.speaks(after_s) is is_right


def test_a_raise_without_an_answer_is_no_lease() -> None:
    server = Server()
    server.raises(answered=False)
    assert not server.speaks(0.1)


def test_an_earlier_raise_counts_until_the_next_one_is_answered() -> None:
    server = Server()
    server.raises(answered=True)
    server.now += 2.0
    server.raises(answered=False)
    assert server.speaks(0.4)
    assert not server.speaks(0.5)


def test_a_door_may_speak_for_another_server_and_where_no_lease_is_needed() -> None:
    server = Server()
    server.leases.home_of = lambda _: None
    assert server.speaks(0.1)
    server = Server()
    server.leases.are_needed = False
    assert server.speaks(0.1)
