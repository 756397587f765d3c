"""A server inherits the listening sockets of the one that it succeeds, if they are the same."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.compose.listen_addresses import ListenAddresses
from holdfast.compose.listening import listen, listen_for_commands
from holdfast.compose.succession import NoSuccession
from holdfast.supervisor.control import CONTROL_FILE
from holdfast.web.addresses import Address


class Descriptors(NoSuccession):
    """What a supervisor stores for its servers."""

    is_supervised = True

    def __init__(self) -> None:
        self.descriptors: dict[str, int] = {}
        self._open = ExitStack()

    def keep(self, name: str, descriptor: int) -> None:
        copy = self._open.enter_context(socket.socket(fileno=os.dup(descriptor)))
        self.descriptors[name] = copy.fileno()

    def drop(self, name: str) -> None:
        del self.descriptors[name]

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def descriptors() -> Iterator[Descriptors]:
    store = Descriptors()
    yield store
    store.close()


def ports(opened: list[socket.socket]) -> list[int]:
    found = [each.getsockname()[1] for each in opened]
    for each in opened:
        each.close()
    return found


def at(port: int, *ips: str) -> ListenAddresses:
    return ListenAddresses(Address("localhost", port, ips=ips or ("127.0.0.1",)), None)


def test_a_chosen_port_stays_the_same(descriptors: Descriptors) -> None:
    first = ports(listen(at(0), descriptors).main)
    assert ports(listen(at(0), descriptors).main) == first


def test_a_named_port_that_is_listened_at_is_inherited(descriptors: Descriptors) -> None:
    [port] = ports(listen(at(0), descriptors).main)
    assert ports(listen(at(port), descriptors).main) == [port]


def test_another_address_gets_new_sockets_for_later_servers(descriptors: Descriptors) -> None:
    first = ports(listen(at(0, "127.0.0.1", "127.0.0.2"), descriptors).main)
    [port] = ports(listen(at(0, "127.0.0.3"), descriptors).main)
    assert port not in first
    assert [*descriptors.descriptors] == ["main.0"]
    assert ports(listen(at(port, "127.0.0.3"), descriptors).main) == [port]


def test_a_socket_at_a_path_is_inherited(descriptors: Descriptors, tmp_path: Path) -> None:
    addresses = ListenAddresses(Address("", 0, tmp_path / "sock"), None)
    for each in listen(addresses, descriptors).main:
        each.close()
    number = (tmp_path / "sock").stat().st_ino
    for each in listen(addresses, descriptors).main:
        each.close()
    assert (tmp_path / "sock").stat().st_ino == number


def test_commands_are_taken_at_a_private_socket(descriptors: Descriptors, tmp_path: Path) -> None:
    listen_for_commands(tmp_path, descriptors)
    assert (tmp_path / CONTROL_FILE).stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / CONTROL_FILE))
