"""A server inherits the listening sockets of the one that it succeeds, if they are the same."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.listen_addresses import ListenAddresses
from holdfast.compose.listening import listen, listen_for_commands
from holdfast.compose.succession import Succession
from holdfast.compose.supervised import Supervised
from holdfast.supervisor.control import (
    CONTROL_FILE,
    MOST_DESCRIPTORS,
    channel_pair,
    socket_for_commands,
)
from holdfast.web.http.addresses import Address


class Descriptors(Succession):
    """What a supervisor stores for its servers."""

    is_supervised = True

    def __init__(self) -> None:
        self.descriptors: dict[str, int] = {}
        self._kept: dict[str, int] = {}

    def keep(self, name: str, descriptor: int) -> None:
        self._kept[name] = os.dup(descriptor)

    def ready(self) -> None:
        """The next server inherits what this one has kept."""
        self.close_rest()
        self.descriptors, self._kept = self._kept, {}

    def close_rest(self) -> None:
        for each in self.descriptors.values():
            os.close(each)
        self.descriptors = {}


@pytest.fixture
def descriptors() -> Iterator[Descriptors]:
    store = Descriptors()
    yield store
    store.ready()
    store.close_rest()


def ports(addresses: ListenAddresses, descriptors: Descriptors) -> list[int]:
    """Listen as a server does; returns its ports."""
    opened = listen(addresses, descriptors).main
    found = [each.getsockname()[1] for each in opened]
    close_all(opened)
    descriptors.ready()
    return found


def close_all(opened: list[socket.socket]) -> None:
    for each in opened:
        each.close()


def at(port: int, *ips: str) -> ListenAddresses:
    return ListenAddresses(Address("localhost", port, ips=ips or ("127.0.0.1",)), None)


def test_a_chosen_port_stays_the_same(descriptors: Descriptors) -> None:
    first = ports(at(0), descriptors)
    assert ports(at(0), descriptors) == first


def test_a_named_port_that_is_listened_at_is_inherited(descriptors: Descriptors) -> None:
    [port] = ports(at(0), descriptors)
    assert ports(at(port), descriptors) == [port]


def test_another_address_gets_new_sockets_for_later_servers(descriptors: Descriptors) -> None:
    first = ports(at(0, "127.0.0.1", "127.0.0.2"), descriptors)
    [port] = ports(at(0, "127.0.0.3"), descriptors)
    assert port not in first
    assert [*descriptors.descriptors] == ["main.0"]
    assert ports(at(port, "127.0.0.3"), descriptors) == [port]


def test_what_a_server_does_not_use_no_later_one_inherits(descriptors: Descriptors) -> None:
    """Nobody would read it, and clients would wait there."""
    both = ListenAddresses(at(0).main, Address("localhost", 0, ips=("127.0.0.1",)))
    opened = listen(both, descriptors)
    close_all([*opened.main, *opened.admin])
    descriptors.ready()
    assert [*descriptors.descriptors] == ["admin.0", "main.0"]
    ports(at(0), descriptors)
    assert [*descriptors.descriptors] == ["main.0"]


def test_a_socket_at_a_path_is_inherited(descriptors: Descriptors, tmp_path: Path) -> None:
    addresses = ListenAddresses(Address("", 0, tmp_path / "sock"), None)
    close_all(listen(addresses, descriptors).main)
    descriptors.ready()
    number = (tmp_path / "sock").stat().st_ino
    close_all(listen(addresses, descriptors).main)
    assert (tmp_path / "sock").stat().st_ino == number


def test_a_socket_whose_file_is_gone_is_replaced(descriptors: Descriptors, tmp_path: Path) -> None:
    addresses = ListenAddresses(Address("", 0, tmp_path / "sock"), None)
    close_all(listen(addresses, descriptors).main)
    descriptors.ready()
    (tmp_path / "sock").unlink()
    opened = listen(addresses, descriptors).main
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(tmp_path / "sock"))
    close_all(opened)


@pytest.mark.parametrize("is_successor", [False, True])
def test_sockets_that_systemd_gave_for_another_address_are_named_in_the_log(
    descriptors: Descriptors, caplog: pytest.LogCaptureFixture, *, is_successor: bool
) -> None:
    [port] = ports(at(0), descriptors)
    descriptors.is_successor = is_successor
    ports(at(0, "127.0.0.2"), descriptors)
    said = [each for each in caplog.messages if f"('127.0.0.1', {port})" in each]
    # A restart with other settings is no surprise.
    assert len(said) == (0 if is_successor else 1)


def test_commands_are_taken_at_a_private_socket(descriptors: Descriptors, tmp_path: Path) -> None:
    listen_for_commands(tmp_path, descriptors)
    assert (tmp_path / CONTROL_FILE).stat().st_mode & 0o777 == 0o600
    with socket_for_commands() as client:
        client.connect(str(tmp_path / CONTROL_FILE))


async def test_a_server_keeps_no_more_sockets_than_a_successor_can_get() -> None:
    ours, theirs = channel_pair()
    with closing(ours), closing(theirs):
        server = Supervised(theirs)
        for place in range(MOST_DESCRIPTORS - 1):
            server.keep(f"main.{place}", 0)
        server.ready(url="http://here", limits={"restart_timeout": 60.0})
        parcel = ours.receive()
        assert parcel is not None
        assert len(parcel.descriptors) == MOST_DESCRIPTORS - 1
        parcel.close()
        for place in range(MOST_DESCRIPTORS):
            server.keep(f"main.{place}", 0)
        with pytest.raises(CannotStart, match="more than can be handed over"):
            server.ready(url="http://here", limits={"restart_timeout": 60.0})
        with pytest.raises(CannotStart, match="more than can be handed over"):
            server.listening(3, "links")
        server.close_kept()
