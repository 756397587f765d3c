"""A connection with TLS to another host, and the names in the certificate that it shows."""

import asyncio
from ipaddress import ip_address
from typing import Any, Final, Protocol, cast

from holdfast.web.forwarding.frames import FrameUnreadable, Kind, first_in
from holdfast.web.forwarding.hello import Hello

# How long the other end may take: for the handshake, for its greeting, and to close.
HANDSHAKE_S: Final = 2.0
GREETING_S: Final = 3.0
SHUTDOWN_S: Final = 1.0
# No greeting has as many bytes.
_MOST_OF_GREETING: Final = 4096


class Owner(Protocol):
    """What a connection is for, which may change."""

    def made(self, connection: "TlsConnection", /) -> None:
        """The handshake is over."""
        ...

    def came(self, connection: "TlsConnection", data: bytes, /) -> None:
        """Bytes have come."""
        ...

    def filled(self, connection: "TlsConnection", /, *, is_full: bool) -> None:
        """The other end reads more slowly than this one writes, or as fast again."""
        ...

    def lost(self, connection: "TlsConnection", error: Exception | None, /) -> None:
        """The connection has ended."""
        ...


class TlsConnection(asyncio.Protocol):
    """Tells its owner what happens to it."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._transport: asyncio.Transport | None = None

    @property
    def transport(self) -> asyncio.Transport:
        """Where to write, once the handshake is over."""
        return cast("asyncio.Transport", self._transport)

    def abort(self) -> None:
        """Close it at once, if it is made."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.owner.made(self)

    def data_received(self, data: bytes) -> None:
        self.owner.came(self, data)

    def pause_writing(self) -> None:
        self.owner.filled(self, is_full=True)

    def resume_writing(self) -> None:
        self.owner.filled(self, is_full=False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.owner.lost(self, exc)

    @property
    def names(self) -> set[str]:
        """The names and addresses in the other end's certificate, as `plain` returns them."""
        shown: dict[str, Any] = self.transport.get_extra_info("peercert") or {}
        return {
            plain(name)
            for kind, name in shown.get("subjectAltName", ())
            if kind in ("DNS", "IP Address")
        }


def plain(name: str) -> str:
    """Return the one form of a host's name, or of its address, that is compared."""
    name = name.removeprefix("[").removesuffix("]").lower()
    try:
        return str(ip_address(name))
    except ValueError:
        return name


class GreetingReader:
    """Reads the greeting of a connection that no link has yet."""

    def __init__(self) -> None:
        # Everything that has come, and what came behind the greeting.
        self.read = self.rest = b""

    def take(self, data: bytes) -> Hello | None:
        """Return the greeting if it is complete now. Raises `FrameUnreadable`."""
        self.read += data
        found = first_in(self.read, _MOST_OF_GREETING)
        if found is None:
            return None
        (kind, _, content), self.rest = found
        if kind is not Kind.HELLO:
            raise FrameUnreadable(f"{kind.name} instead of a greeting")
        return Hello.unpack(content)
