"""Which addresses this server may post to: what is checked is what is connected to.

A name is looked up once for each connection, and the connection is made to an address that was
checked, so that a name whose address changes in between leads nowhere else.
"""

import socket
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

_Address = IPv4Address | IPv6Address
# The addresses of IPv6 in which NAT64 has addresses of IPv4.
_NAT64 = IPv6Network("64:ff9b::/96")


class AddressDenied(OSError):
    """This address must not be called. The text says why."""


@dataclass(frozen=True, slots=True)
class OwnPlaces:
    """Where this deployment listens, and where its store is: it posts to none of these."""

    # The ports of this machine.
    ports: Collection[int]
    # The places of other machines.
    others: Collection[tuple[str, int]]


class AllowedAddresses:
    """Decides about the addresses of one URL."""

    def __init__(self, own_places: OwnPlaces, *, allows_private: bool) -> None:
        self._own_places = own_places
        self._allows_private = allows_private

    def check(self, host: str, port: int) -> None:
        """Raise `AddressDenied` if the address, which is no name, must not be called."""
        address = _plain(ip_address(host))
        if address.is_multicast or address.is_unspecified:
            raise AddressDenied(f"{address} is not the address of a host")
        own = self._own_places
        if (str(address), port) in own.others or (port in own.ports and is_here(str(address))):
            raise AddressDenied(f"{address} port {port} belongs to this deployment")
        if not (self._allows_private or _is_public(address)):
            raise AddressDenied(f"{address} is not public: set allow_private to call it")


def _plain(address: _Address) -> _Address:
    """Return the address of IPv4 that one of IPv6 stands for."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    tunnelled = None if address.teredo is None else address.teredo[1]
    return address.ipv4_mapped or address.sixtofour or tunnelled or address


def _is_public(address: _Address) -> bool:
    """Return whether anybody on the internet could call this address.

    Python also calls addresses global that are reserved or were for sites.
    """
    is_of_site = isinstance(address, IPv6Address) and address.is_site_local
    return address.is_global and not address.is_reserved and not is_of_site


def is_here(ip: str) -> bool:
    """Return whether this machine has the address: only then a socket can be bound to it."""
    family, kind, protocol, _, place = socket.getaddrinfo(
        ip, 0, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
    )[0]
    with socket.socket(family, kind, protocol) as asking:
        try:
            asking.bind(place)
        except OSError:
            return False
    return True


class CheckedResolver(AbstractResolver):
    """Looks names up for connections, and returns only addresses that may be called."""

    def __init__(
        self,
        resolve: Callable[[str, int, socket.AddressFamily], Awaitable[list[ResolveResult]]],
        addresses: AllowedAddresses,
    ) -> None:
        self._resolve = resolve
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolve(host, port, family)
        allowed, denied = [], None
        for each in found:
            try:
                self._addresses.check(each["host"], port)
            except AddressDenied as error:
                denied = error
            else:
                allowed.append(each)
        if denied is not None and not allowed:
            raise denied
        return allowed

    async def close(self) -> None:
        """Close nothing: the one who gave `resolve` has what it needs."""
