"""Identifies the client: the connection's peer, or the client that trusted proxies name."""

from asyncio import BaseTransport
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv6Address,
    ip_address,
    ip_network,
)
from typing import NamedTuple

from multidict import CIMultiDictProxy

from holdfast.bayeux.wire.caller import UNKNOWN, Caller

# In the list of trusted proxies: every process that connects to the server's Unix socket.
UNIX = "unix"
X_FORWARDED_FOR = "X-Forwarded-For"
# Providers assign customers at least a /64, so its addresses count as one client.
_IPV6_PREFIX = 64
# How many addresses are cached.
_REMEMBERED = 4096

Address = IPv4Address | IPv6Address
Headers = CIMultiDictProxy[str]


class _ForwardedHop(NamedTuple):
    """A proxy's report about its client."""

    address: str
    scheme: str


class _Peer(NamedTuple):
    """What follows from an address. It is the same for all requests from there."""

    address: str
    # The key of its limits.
    network: str
    is_trusted: bool
    # The sender of its requests that show nothing but the address: one for all of them, because
    # making a caller takes long, and every client has a new head at least once.
    plain: Caller


class Peers:
    """Finds out who sent a request.

    Only trusted proxies are believed about their clients, and only in the configured header: any
    other header would arrive as the client wrote it. Each proxy appends its client's address, so
    the list is read from its end, up to the first address that is not a trusted proxy.
    """

    def __init__(
        self,
        trusted: Sequence[str] = (),
        header: str = X_FORWARDED_FOR,
        *,
        shows_headers: bool = True,
    ) -> None:
        """Without `shows_headers`, callers carry no headers, which take 1.4 KB per connection."""
        self._shows_headers = shows_headers
        self._networks = [ip_network(each) for each in trusted if each != UNIX]
        self._header = header
        # A connection without an address.
        self._local = _Peer("", "", is_trusted=UNIX in trusted, plain=UNKNOWN)
        self._find = lru_cache(_REMEMBERED)(self._look_up)

    def caller(self, headers: Headers, transport: BaseTransport | None) -> Caller:
        """Return the sender of a request with these headers on this connection."""
        name = None if transport is None else transport.get_extra_info("peername")
        found = self._find(name[0]) if isinstance(name, tuple) else None
        peer = self._local if found is None else found
        is_secure = transport is not None and transport.get_extra_info("sslcontext") is not None
        if peer.is_trusted:
            return self._forwarded(headers, peer, is_secure)
        if not (is_secure or self._shows_headers):
            return peer.plain
        return replace(
            peer.plain,
            headers=headers if self._shows_headers else UNKNOWN.headers,
            is_secure=is_secure,
            tls_subject=subject_of(transport) if is_secure else (),
        )

    def _forwarded(self, headers: Headers, proxy: _Peer, is_secure: bool) -> Caller:
        client = proxy
        for hop in self._hops(headers):
            found = self._find(hop.address)
            if found is None:
                # The proxy does not name its client, and anything before it may be forged.
                break
            if hop.scheme:
                is_secure = hop.scheme == "https"
            client = found
            if not client.is_trusted:
                break
        return Caller(
            address=client.address,
            network="" if client.is_trusted else client.network,
            headers=headers if self._shows_headers else UNKNOWN.headers,
            is_proxied=True,
            is_secure=is_secure,
        )

    def _look_up(self, text: str) -> _Peer | None:
        address = parse(text)
        if address is None:
            return None
        is_trusted = any(address in each for each in self._networks)
        limited = network(address)
        plain = Caller(str(address), "" if address.is_loopback else limited)
        return _Peer(str(address), limited, is_trusted, plain)

    def _hops(self, headers: Headers) -> Iterator[_ForwardedHop]:
        """Return the proxies' reports, the nearest first."""
        # Split at commas even within quotes: a quote that the client opened must not hide what a
        # proxy appended.
        lines = reversed(headers.getall(self._header, []))
        values = (value for line in lines for value in reversed(line.split(",")))
        if self._header == X_FORWARDED_FOR:
            scheme = headers.getall("X-Forwarded-Proto", [""])[-1].rpartition(",")[2]
            for value in values:
                yield _ForwardedHop(value.strip(), scheme.strip().lower())
        else:
            yield from map(_element, values)


def _element(text: str) -> _ForwardedHop:
    """Parse an element of `Forwarded` (RFC 7239)."""
    pairs = {}
    for pair in text.split(";"):
        name, _, value = pair.partition("=")
        pairs[name.strip().lower()] = value.strip().strip('"')
    return _ForwardedHop(pairs.get("for", ""), pairs.get("proto", "").lower())


def parse(text: str) -> Address | None:
    """Parse an address with optional port, brackets and zone; None if there is no address."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def network(address: Address) -> str:
    """The unit of limits per address: the IPv4 address, or the /64 of an IPv6 address."""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(ip_network((address, _IPV6_PREFIX), strict=False))


def subject_of(transport: BaseTransport | None) -> tuple[tuple[str, str], ...]:
    """Return the subject of the client's certificate, if this server verified one."""
    certificate = None if transport is None else transport.get_extra_info("peercert")
    if not certificate:
        return ()
    return tuple(pair for part in certificate.get("subject", ()) for pair in part)
