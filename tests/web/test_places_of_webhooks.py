"""Webhooks call neither the server that makes them nor its store, whatever their addresses."""

import socket

import pytest

from holdfast.compose.listening import ListeningSockets
from holdfast.compose.own_places import own_places
from holdfast.settings import Settings
from holdfast.web.outgoing.allowed_addresses import AddressDenied, AllowedAddresses


def address_of_this_machine() -> str:
    """Another than the loopback address, if there is one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            # This sends nothing.
            asking.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(asking.getsockname()[0])


@pytest.mark.parametrize("of_url", ["127.0.0.1", "localhost", address_of_this_machine()])
@pytest.mark.parametrize("called", ["127.0.0.1", "::1", address_of_this_machine()])
async def test_a_store_on_this_machine_is_never_called(of_url: str, called: str) -> None:
    places = await own_places(Settings(redis=f"redis://{of_url}:6390"), [])
    allowed = AllowedAddresses(places, allows_private=True)
    with pytest.raises(AddressDenied, match="belongs to this deployment"):
        allowed.check(called, 6390)
    allowed.check(called, 6391)


@pytest.mark.parametrize("called", ["127.0.0.1", "127.0.0.2", address_of_this_machine()])
async def test_the_server_itself_is_never_called(called: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        ports = ListeningSockets([listening], []).ports(None, 1)
        places = await own_places(Settings(), ports)
        allowed = AllowedAddresses(places, allows_private=True)
        with pytest.raises(AddressDenied, match="belongs to this deployment"):
            allowed.check(called, port)


@pytest.mark.parametrize("shard", range(3))
async def test_no_worker_is_called_at_its_own_port(shard: int) -> None:
    places = await own_places(Settings(), ListeningSockets([], []).ports(6390, 3))
    allowed = AllowedAddresses(places, allows_private=True)
    with pytest.raises(AddressDenied, match="belongs to this deployment"):
        allowed.check("127.0.0.1", 6390 + shard)
    allowed.check("127.0.0.1", 6393)
