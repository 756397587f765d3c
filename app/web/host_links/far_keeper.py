"""Keeps a link from this process, as a door, to a shard that may be on any host."""

import asyncio
import logging
import random
import secrets
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.frames import FrameUnreadable
from holdfast.web.forwarding.hello import Hello
from holdfast.web.forwarding.link_keeper import LinkKeeper
from holdfast.web.forwarding.shard_link import Link
from holdfast.web.host_links import preamble
from holdfast.web.host_links.moving_transport import MovingTransport
from holdfast.web.host_links.tls_connection import (
    HANDSHAKE_S,
    SHUTDOWN_S,
    GreetingReader,
    TlsConnection,
)
from holdfast.web.host_links.whereabouts import Whereabouts
from holdfast.web.tasks import cancel

log = logging.getLogger(__name__)

# How long the store may take to say which host has a shard, and that host to accept a connection.
_LOOKING_S: Final = 1.0
_CONNECTING_S: Final = 1.5
# When the store is asked again while a link is being made, and while there is one.
_AGAIN_S: Final = 0.25
_LINKED_S: Final = 1.0
# When a new connection takes over a link, with the certificates of that time: so many seconds after
# the last one, and so many after a failure. Without one, the link ends after an hour.
_RENEWED_AFTER_S: Final = (1800.0, 3000.0)
_RENEWED_AGAIN_S: Final = 60.0
_OLDEST_S: Final = 3600.0
_RENEWING_S: Final = 5.0
_LEFT: Final = "it has closed the connection"


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of the deployment, as the doors of one of them see them."""

    # The name of this host.
    own: str
    # By name of a host, where it accepts links: what its certificate is for, and the port.
    addresses: Mapping[str, tuple[str, int]]
    # Returns the TLS of new connections to others.
    tls: Callable[[], ssl.SSLContext]
    whereabouts: Whereabouts

    def address_of(self, host: str) -> tuple[str, int]:
        """Return where a host accepts links. Raises `OSError` if it is not in the list."""
        found = self.addresses.get(host)
        if found is None:
            raise OSError(f"{host} is none of the hosts in the settings")
        return found


class FarKeeper(LinkKeeper):
    """Connects to the host that has the shard, which is asked for each time."""

    def __init__(self, shard: int, path: Path, hello: Hello, far: FarShard, hosts: Hosts) -> None:
        super().__init__(shard, path, hello, far)
        self._hosts = hosts
        # The host that had the shard last, as far as is known.
        self._host: str | None = None
        # What the link is called that is being made, and its transport to another host.
        self._name = ""
        self._moving: MovingTransport | None = None
        # What was logged last.
        self._said = ""

    @property
    def host(self) -> str:
        """The host that had the shard last; empty if that is unknown."""
        return self._host or ""

    def _greeting(self) -> Hello:
        self._name = secrets.token_hex(8)
        return replace(self._hello, link=self._name)

    async def _hold(self) -> bool:
        """Give up an attempt, or a link, as soon as another host has the shard.

        A host that does not run any more may accept, and say nothing. One that only cannot reach
        the store keeps its links, and answers nothing at them.
        """
        await self._look()
        attempt = asyncio.create_task(super()._hold())
        try:
            while True:
                was_linked = self._far.is_linked
                await asyncio.wait([attempt], timeout=_LINKED_S if was_linked else _AGAIN_S)
                if attempt.done():
                    return attempt.result()
                if self._far.is_linked is not was_linked:
                    continue
                # What ends meanwhile says why.
                if await self._look() and not attempt.done():
                    return False
        finally:
            await cancel(attempt)
            if not attempt.cancelled():
                # It is given up, for whatever reason it has failed meanwhile.
                attempt.exception()

    async def _connect(self, link: Link) -> None:
        self._moving = None
        if self.is_near:
            await super()._connect(link)
            return
        moving = MovingTransport(link, self._say_unheard)
        try:
            await self._connect_to_host(TlsConnection(moving))
        except BaseException:
            moving.stop()
            link.give_up()
            raise
        self._moving = moving

    async def _look(self) -> bool:
        """Ask which host has the shard; return whether another one has it now.

        If that is unknown, it is where it was.
        """
        before = self._host
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(_LOOKING_S):
                self._host = await self._hosts.whereabouts.host_of(self._shard) or self._host
        self.is_near = self._host in (None, self._hosts.own)
        return self._host != before

    async def _connect_to_host(self, connection: TlsConnection) -> None:
        """Connect to the host that has the shard. Raises `OSError`."""
        try:
            await self._connect_to(self._hosts.address_of(self._host or ""), connection)
        except OSError as error:
            self._say(f"{error}" or "it does not answer")
            raise

    async def _connect_to(self, address: tuple[str, int], connection: TlsConnection) -> None:
        """Say in plain bytes which worker the connection is for, then speak TLS."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_CONNECTING_S):
            plain, _ = await loop.create_connection(asyncio.Protocol, *address)
        try:
            plain.write(preamble.pack(self._shard))
            if plain.is_closing():
                raise ConnectionResetError(_LEFT)
            encrypted = await loop.start_tls(
                plain,
                connection,
                self._hosts.tls(),
                server_hostname=address[0],
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=SHUTDOWN_S,
            )
            if encrypted is None or encrypted.is_closing():
                raise ConnectionResetError(_LEFT)
        except BaseException:
            plain.abort()
            raise
        # The other end says nothing before it has heard a greeting.
        connection.connection_made(encrypted)

    def _refusal_of(self, peer: Hello) -> str | None:
        fault = super()._refusal_of(peer)
        if fault is None and not self.is_near and peer.host != self._host:
            fault = f"it says that it is on {peer.host or 'no host'}, not on {self._host}"
        if fault is None:
            self._said = ""
        return fault

    def _say_unheard(self, error: Exception | None) -> None:
        self._say(f"it has closed the connection: {error or 'without a reason'}")

    def _say(self, failure: str) -> None:
        """Log why there is no link, unless that was logged last."""
        if failure != self._said:
            self._said = failure
            log.warning("no link to shard %d on %s: %s", self._shard, self._host, failure)

    # Later connections of a link

    async def _last(self, link: Link) -> None:
        moving = self._moving
        if moving is None:
            await super()._last(link)
            return
        loop = asyncio.get_running_loop()
        made_at, wait_s = loop.time(), _renewed_after_s()
        while True:
            await asyncio.wait([link.ended], timeout=wait_s)
            if link.ended.done():
                return
            if await self._renew(moving):
                made_at, wait_s = loop.time(), _renewed_after_s()
                continue
            wait_s = _RENEWED_AGAIN_S
            if loop.time() - made_at > _OLDEST_S - wait_s:
                self._say("the link ends, because no new connection could take it over in an hour")
                link.abort()

    async def _renew(self, moving: MovingTransport) -> bool:
        """Let a new connection take over the link. Returns whether that was possible."""
        hello = replace(self._hello, link=self._name, renews=True)
        renewal = _Renewal(moving, hello, self._fault_of)
        connection = TlsConnection(renewal)
        is_moved = False
        try:
            async with asyncio.timeout(_RENEWING_S):
                await self._connect_to_host(connection)
                is_moved = await renewal.moved
        except OSError:
            # It was logged, or took too long.
            pass
        finally:
            if not is_moved:
                connection.abort()
        return is_moved


def _renewed_after_s() -> float:
    """Return when to renew a link, not all at once."""
    return random.uniform(*_RENEWED_AFTER_S)  # noqa: S311 - not a secret


class _Renewal:
    """The owner of a new connection until it takes over a link."""

    def __init__(
        self, moving: MovingTransport, hello: Hello, fault_of: Callable[[Hello], str | None]
    ) -> None:
        self._moving, self._hello, self._fault_of = moving, hello, fault_of
        self._greeting = GreetingReader()
        self.moved: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def made(self, connection: TlsConnection) -> None:
        connection.transport.write(self._hello.pack())

    def came(self, connection: TlsConnection, data: bytes) -> None:
        try:
            peer = self._greeting.take(data)
        except FrameUnreadable as error:
            log.error("a connection to another host is closed: it brought %s", error)
            connection.abort()
            return
        if peer is None:
            return
        if self._fault_of(peer) is not None:
            connection.abort()
        else:
            self._moving.move_to(connection, self._greeting.rest, self.moved)

    def filled(self, connection: TlsConnection, *, is_full: bool) -> None:
        """Nothing but a greeting is written before the link has the connection."""

    def lost(self, connection: TlsConnection, error: Exception | None) -> None:
        if not self.moved.done():
            self.moved.set_result(False)
