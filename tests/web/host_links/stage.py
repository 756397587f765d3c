"""A shard on one host, its door on another one, and what is between them, all in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from holdfast.compose.forwarding import bound
from holdfast.compose.link_certificates import TlsOfLinks
from holdfast.compose.placement import far_link_in
from holdfast.supervisor.packets import PACKETS
from holdfast.web.forwarding.asks import Asked
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.hello import Hello
from holdfast.web.forwarding.home_core import HomeCore
from holdfast.web.forwarding.link_server import LinkServer
from holdfast.web.forwarding.request_home import Home
from holdfast.web.host_links.far_keeper import FarKeeper, Hosts
from holdfast.web.host_links.front_desk import FrontDesk
from holdfast.web.host_links.receiver import Receiver
from holdfast.web.http.addresses import listen_at
from holdfast.web.tasks import cancel
from tests.chaos.proxy import Address, Proxy
from tests.store.store_process import until
from tests.web.certificates import Authority
from tests.web.forwarding.test_links import Inlet
from tests.web.rig import Rig

SHARDS = 3
# The hosts, by their addresses.
DOOR, HOME = "127.0.0.2", "127.0.0.1"
HELLO = Hello(shard=1, count=SHARDS, deployment="here", release="1.0", host=HOME)
# So long that no test waits for it.
LONG_AGO = timedelta(days=30)


@dataclass
class Known:
    """What the store says about the only shard."""

    host: str | None = HOME
    asked: int = 0

    async def host_of(self, shard: int) -> str | None:
        assert shard == 1
        self.asked += 1
        return self.host


@dataclass
class Certificates:
    """What each host shows, which may change."""

    authority: Authority
    door: TlsOfLinks = field(init=False)
    home: TlsOfLinks = field(init=False)

    def __post_init__(self) -> None:
        self.door, self.home = self.of(DOOR), self.of(HOME)

    def of(
        self, at: str, *, ago: timedelta | None = None, by: Authority | None = None
    ) -> TlsOfLinks:
        """Return the TLS of a host at this address, whose certificate was issued some time ago."""
        issuer = by or self.authority
        pair = issuer.issue("a host", ago=ago or timedelta(), at=at)
        return TlsOfLinks(*pair, self.authority.file)


class Addresses(dict[str, tuple[str, int]]):
    """Where the home listens, as the door knows it now."""

    def __init__(self, both: "Hall") -> None:
        super().__init__()
        self._both = both

    def get(self, name: str, _: Any = None) -> Any:
        port = self._both.port_of_home or self._both.proxy.port
        return (HOME, port) if name == HOME else None


class Hall:
    """Both hosts. There is a proxy between them, and there may be more shards at the home."""

    def __init__(self, path: Path, certificates: Certificates) -> None:
        self.path, self.certificates = path, certificates
        self.rig = Rig()
        self.inlet = Inlet()
        self.known = Known()
        self.door, self.hello = replace(HELLO, shard=0, host=DOOR), HELLO
        # Another port than the one of the proxy.
        self.port_of_home: int | None = None
        self.far = FarShard(1, self.rig._clock)

    door_keeper: FarKeeper

    async def open(self) -> None:
        """Listen at the home."""
        sockets = listen_at([HOME], 0, 100)
        self.port = sockets[0].getsockname()[1]
        self.desk = FrontDesk(sockets, lambda shard: far_link_in(self.path, shard), SHARDS)
        self.proxy = Proxy(Address(HOME, self.port))

    def serve(self) -> None:
        """Begin to take connections at the shard."""
        rig = self.rig
        core = HomeCore(rig.bayeux, rig._clock, rig.endpoint.gate)
        parts = (rig.scheduler, rig.coalescer, core)
        self.server = LinkServer(self.hello, lambda: Home(*parts, 1, Asked(), self.inlet))
        self.receiver = Receiver(
            self.server, self.hello, [DOOR, "127.0.0.3"], lambda: self.certificates.home.server
        )
        self.receiver.open(bound(far_link_in(self.path, 1), PACKETS))

    def stop(self) -> None:
        """End the process of the shard."""
        self.receiver.close()
        self.server.close()

    def keeper(self, **changes: Any) -> FarKeeper:
        """Return what keeps a link of another door, through the proxy."""
        far = FarShard(1, self.rig._clock)
        return self._keeper(replace(self.door, **changes), far)

    def _keeper(self, door: Hello, far: FarShard) -> FarKeeper:
        hosts = Hosts(DOOR, Addresses(self), lambda: self.certificates.door.client, self.known)
        return FarKeeper(1, self.path / "1.sock", door, far, hosts)

    async def linked(self, *, is_linked: bool = True) -> None:
        await until(lambda: self.far._may_send() is is_linked)

    async def opened(self) -> None:
        """Wait until messages may go from the door's shard to the home."""
        await until(lambda: self.far.passage.is_open)

    @property
    def transport(self) -> Any:
        """What the link of the door writes to."""
        link = self.far._link
        assert link is not None
        return link._transport


@asynccontextmanager
async def hall(
    path: Path,
    certificates: Certificates,
    *,
    door: dict[str, Any] | None = None,
    home: Any = HELLO,
    is_at: str = HOME,
) -> AsyncIterator[Hall]:
    """Both hosts, with a link that is being made."""
    both = Hall(path, certificates)
    both.door, both.hello = replace(both.door, **(door or {})), home
    both.known.host = is_at
    await both.open()
    async with both.proxy:
        both.serve()
        both.door_keeper = both._keeper(both.door, both.far)
        task = asyncio.create_task(both.door_keeper.run())
        try:
            yield both
        finally:
            await cancel(task)
            # The proxy accepts what was just being made.
            await asyncio.sleep(0.05)
            both.stop()
            both.desk.close()
            await until(lambda: not (both.server._homes or both.receiver._coming))
    # What says goodbye to an end that has gone takes some turns.
    loop: Any = asyncio.get_running_loop()
    opened = getattr(loop, "_transports", {})
    await until(lambda: all(each._sock is None for each in [*opened.values()]))


async def talk(port: int, said: bytes) -> bytes:
    """Say this to a port, and return everything that comes until it is closed."""
    reader, writer = await asyncio.open_connection(HOME, port)
    try:
        writer.write(said)
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def both_loops(play: Callable[[], Any]) -> None:
    """Run this on each of the event loops that a server may have."""
    import uvloop

    asyncio.run(play())
    uvloop.run(play())
