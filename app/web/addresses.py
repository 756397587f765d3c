"""Addresses to listen at, and whether other machines reach them."""

import asyncio
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Address:
    """A Unix socket if one is named, else all addresses of a host."""

    host: str
    port: int
    unix: Path | None = None
    tls: ssl.SSLContext | None = None
    # The addresses that the host resolves to; these are bound, and decide who can connect.
    ips: tuple[str, ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether only this machine can connect."""
        return self.unix is not None or (bool(self.ips) and all(map(_is_loopback, self.ips)))

    @property
    def url_host(self) -> str:
        """The host as it is written in URLs."""
        return f"[{self.host}]" if ":" in self.host else self.host


async def resolve(host: str) -> tuple[str, ...]:
    """Return the distinct addresses of a host; of an empty name, every address of this machine."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


def _is_loopback(ip: str) -> bool:
    try:
        return ipaddress.ip_address(ip).is_loopback
    except ValueError:
        return False
