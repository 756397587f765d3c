"""Where a listener is, and whether anybody but this machine reaches it there."""

import asyncio
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: a Unix socket if one is named, else all addresses of a host."""

    host: str
    port: int
    unix: Path | None = None
    tls: ssl.SSLContext | None = None
    # What the host is resolved to: these are bound, and these say who gets here.
    ips: tuple[str, ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether only this machine gets here."""
        return self.unix is not None or (bool(self.ips) and all(map(_is_loopback, self.ips)))

    @property
    def url_host(self) -> str:
        """The host as URLs have it."""
        return f"[{self.host}]" if ":" in self.host else self.host


async def resolve(host: str) -> tuple[str, ...]:
    """The addresses of a host, each once; without a name it is every address of this machine."""
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
