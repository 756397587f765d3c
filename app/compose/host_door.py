"""The port of this host for links, in a process that has no shard."""

import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from holdfast.compose.host_links import addresses_of
from holdfast.compose.listening import naming, sockets_of
from holdfast.compose.placement import far_link_in
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.web.host_links.front_desk import FrontDesk
from holdfast.web.http.addresses import Address

# The name of its sockets.
HOSTS = "hosts"


def listen_for_hosts(settings: Settings, succession: Succession) -> list[socket.socket]:
    """Open the sockets at which other hosts connect, or inherit them. Raises `CannotStart`.

    If the list has an address of this host, they have no other. If it has a name, they have all
    addresses of this machine, because the name may mean another one here than elsewhere.
    """
    name, port = addresses_of(settings)[settings.own_host or ""]
    address = Address(name, port, ips=_ips_of(name))
    with naming(address, "hosts"):
        return sockets_of(address, HOSTS, succession)


def _ips_of(name: str) -> tuple[str, ...]:
    try:
        return (str(ip_address(name)),)
    except ValueError:
        every = socket.getaddrinfo(None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return tuple(dict.fromkeys(str(place[0]) for *_, place in every))


def open_host_door(
    sockets: Sequence[socket.socket], links: Path, shards: int, stack: AsyncExitStack
) -> FrontDesk:
    """Pass on what connects to these sockets to the workers of this host. The stack ends it.

    Args:
        links: The directory with the sockets of the workers.
        shards: How many shards the deployment has.
    """
    desk = FrontDesk(sockets, partial(far_link_in, links), shards)
    stack.callback(desk.close)
    return desk
