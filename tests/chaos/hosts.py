"""Three hosts with six shards on one store, and what leads clients to a host that serves.

All run on this machine, each at a loopback address of its own. What one says to another, and to a
store that is one server, goes through proxies, which can cut it off.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp

from bench.processes import reserved_port
from holdfast.web.admin.paths import API
from tests.chaos.proxy import Address, Proxy, Way
from tests.chaos.skewed import SkewedClock
from tests.chaos.twin import LIMIT_S, Twin, children
from tests.slowness import times_slower
from tests.store.cluster import Cluster, cluster
from tests.store.servers import ValkeyServer
from tests.web.certificates import Authority

SHARDS = 6
NAMES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
_CLAIMER = "holdfast-claim"
_WORKER = "holdfast/"
_DOOR = "holdfast-door"
# On a busy machine, a host that starts late gets its shards after the minute in which they stay
# with those that were faster.
READY_S = LIMIT_S + 90.0
# How often it is looked which hosts are ready, as a health check does, and for how long.
_LOOK_S = 0.5
_CHECK_S = 2.0
_AS_PROMISED = {"replicas": 2, "timeout_ms": 2000}
# How long one that is asked may take to answer.
_ASKED_S = 10.0


class Host(Twin):
    """A host, with the proxies by which it reaches others and they reach it."""

    # None on a store that is a Cluster.
    to_store: Proxy | None = None
    # None unless its clock may jump.
    clock: SkewedClock | None = None

    def __init__(self, home: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(home, settings)
        self.name: str = settings["own_host"]
        self.links: list[Proxy] = []

    def have_clock(self, home: Path) -> None:
        """Have a wall clock of its own, before it is started."""
        self.clock = SkewedClock(home)
        self._variables = {**self._variables, **self.clock.variables}

    def cut_off_from_store(self) -> None:
        assert self.to_store is not None
        self.to_store.black_hole()

    def cut_off_from_hosts(self) -> None:
        for each in self.links:
            each.black_hole()

    def deafen(self) -> None:
        """Let nothing come back from those whom it has called, nor reach it from the others."""
        for each in self.links:
            each.one_way(Way.UP if each.at == self.name else Way.DOWN)

    def slow_down(self, latency_s: float) -> None:
        """Delay each direction of whatever others and the store are told, and tell."""
        for each in (*self.links, *filter(None, [self.to_store])):
            each.latency_s = latency_s

    def heal(self) -> None:
        for each in (*self.links, *filter(None, [self.to_store])):
            each.heal()
            # What was lost must not be followed by anything.
            each.reset()

    @property
    def claimer(self) -> int:
        """The process that claims shards; 0 while there is none."""
        return next((pid for pid, name in self._servers() if name == _CLAIMER), 0)

    @property
    def shards(self) -> dict[int, int]:
        """The worker of each shard that has one here, or has one that is about to open it."""
        return {
            int(name.removeprefix(_WORKER)): pid
            for pid, name in self._servers()
            if name.startswith(_WORKER)
        }

    @property
    def has_door(self) -> bool:
        """Whether a process without a shard serves clients, or is about to."""
        return any(name == _DOOR for _, name in self._servers())

    def _servers(self) -> Iterable[tuple[int, str]]:
        for importer in children(self.supervisor_pid):
            for pid in children(importer):
                with suppress(OSError):
                    yield pid, Path(f"/proc/{pid}/comm").read_text().strip()


class Hosts:
    """The hosts of a deployment, which have a store of its own unless that is a Cluster."""

    store: ValkeyServer | None = None
    # Whether each has a wall clock of its own.
    have_clocks = False
    kind = Host

    def __init__(self, home: Path, stack: AsyncExitStack, settings: Mapping[str, Any]) -> None:
        self._home, self._stack, self._settings = home, stack, settings
        self.all: list[Host] = []

    async def prepare(self, urls: Sequence[str], to_store: Sequence[Proxy] = ()) -> None:
        """Make the hosts, which reach the store at these URLs, through these proxies if any."""
        authority = Authority(self._home)
        ports = [self._stack.enter_context(reserved_port()) for _ in NAMES]
        places = [Address(name, port) for name, port in zip(NAMES, ports, strict=True)]
        ways = {
            (one, other): await self._stack.enter_async_context(Proxy(other, at=other.host))
            for one in places
            for other in places
            if one is not other
        }
        for number, own in enumerate(places):
            listed = [own if own is other else _place_of(ways[own, other]) for other in places]
            cert, key = authority.issue(own.host, at=own.host)
            directory = self._home / own.host
            directory.mkdir()
            settings = {
                "redis": urls[number],
                "hosts": [f"{each.host}:{each.port}" for each in listed],
                "own_host": own.host,
                "shards": SHARDS,
                "standby": False,
                "link_cert": str(cert),
                "link_key": str(key),
                "link_ca": str(authority.file),
                **self._settings,
            }
            host = self.kind(directory, settings)
            host.links = [way for pair, way in ways.items() if own in pair]
            host.to_store = to_store[number] if to_store else None
            if self.have_clocks:
                host.have_clock(directory)
            self._stack.push_async_callback(host.close)
            self.all.append(host)

    def begin(self) -> None:
        for each in self.all:
            each.begin()

    async def are_well(self) -> None:
        """Wait until all of them are ready, and each shard has one worker."""
        for each in self.all:
            await each.serves(READY_S)
        await until(self.have_all_shards)

    def have_all_shards(self) -> bool:
        found = [shard for each in self.all if each.is_running for shard in each.shards]
        return sorted(found) == [*range(SHARDS)]

    async def drain(self, host: Host) -> None:
        """Have a host give its shards to the others."""
        await self._ask("PUT", host, {})

    async def uncordon(self, host: Host) -> None:
        await self._ask("DELETE", host)

    async def _ask(self, method: str, host: Host, body: object = None) -> None:
        """Ask whichever host answers."""
        path = f"/admin{API}/hosts/{host.name}/drain"
        async with asyncio.timeout(LIMIT_S), aiohttp.ClientSession() as http:
            for asked in cycle(self.all):
                with suppress(aiohttp.ClientError, TimeoutError, OSError):
                    token = (asked.data / "admin-token").read_text().strip()
                    headers = {"Authorization": f"Bearer {token}"}
                    timeout = aiohttp.ClientTimeout(total=_ASKED_S)
                    async with http.request(
                        method, asked.url + path, json=body, headers=headers, timeout=timeout
                    ) as response:
                        if response.status < 300:
                            return
                await asyncio.sleep(_LOOK_S)

    def owner_of(self, shard: int) -> Host:
        return next(each for each in self.all if each.is_running and shard in each.shards)


def _place_of(proxy: Proxy) -> Address:
    return Address(proxy.at, proxy.port)


async def until(is_so: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Wait for something that is seen from outside alone."""
    async with asyncio.timeout(limit_s):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


class Ways:
    """A way to each host; if that is not ready, to another one. Clients have one each."""

    # Whether connections end at once when they are to lead elsewhere. If not, only new ones do.
    end_connections = True

    def __init__(self, hosts: Sequence[Twin], proxies: Sequence[Proxy]) -> None:
        self._hosts, self._proxies = hosts, proxies
        self._ready: dict[Twin, bool] = {}

    @property
    def urls(self) -> list[str]:
        return [each.url for each in self._proxies]

    async def run(self) -> None:
        await asyncio.gather(*map(self._watch, self._hosts))

    async def _watch(self, host: Twin) -> None:
        while True:
            is_ready = await _is_ready(host)
            if self._ready.get(host) is not is_ready:
                self._ready[host] = is_ready
                self._lead()
            await asyncio.sleep(_LOOK_S)

    def _lead(self) -> None:
        for number, proxy in enumerate(self._proxies):
            turned = [*self._hosts[number:], *self._hosts[:number]]
            host = next((each for each in turned if self._ready.get(each)), turned[0])
            if proxy.upstream != host.address:
                proxy.upstream = host.address
                if self.end_connections:
                    proxy.reset()

    async def lead_away_from(self, host: Twin) -> None:
        """Wait until no new connection leads to a host."""
        await until(lambda: all(each.upstream != host.address for each in self._proxies))


async def _is_ready(host: Twin) -> bool:
    with suppress(TimeoutError):
        # A host that is only slow here must not lose its connections.
        async with asyncio.timeout(_CHECK_S * times_slower()):
            return (await host.readiness())[0] == 200
    return False


@asynccontextmanager
async def three_hosts(
    home: Path, *, have_clocks: bool = False, kind: type[Host] = Host, **settings: Any
) -> AsyncIterator[tuple[Hosts, Ways]]:
    """Run three hosts on a Valkey, with ways to them, and wall clocks of their own if wanted."""
    async with AsyncExitStack() as stack:
        port = stack.enter_context(reserved_port())
        store = ValkeyServer(port=str(port), appendonly="yes", appendfsync="always")
        stack.enter_context(store)
        proxies = [
            await stack.enter_async_context(Proxy(Address("127.0.0.1", port))) for _ in NAMES
        ]
        hosts = Hosts(home, stack, settings)
        hosts.store, hosts.have_clocks, hosts.kind = store, have_clocks, kind
        await hosts.prepare([f"redis://127.0.0.1:{each.port}" for each in proxies], proxies)
        async with _running(hosts) as ways:
            yield hosts, ways


@asynccontextmanager
async def three_hosts_on_a_cluster(
    home: Path,
    *,
    have_clocks: bool = False,
    first_user: int | None = None,
    is_as_promised: bool = False,
    **settings: Any,
) -> AsyncIterator[tuple[Hosts, Ways, Cluster]]:
    """Run three hosts on three primaries with a replica each, with ways to them.

    With `is_as_promised`, each has two replicas, and nodes wait for each other as long as in what
    we promise.
    """
    more = _AS_PROMISED if is_as_promised else {}
    async with AsyncExitStack() as stack:
        found = stack.enter_context(cluster(first_user, **more))
        hosts = Hosts(home, stack, settings)
        hosts.have_clocks = have_clocks
        await hosts.prepare([found.url] * len(NAMES))
        async with _running(hosts) as ways:
            yield hosts, ways, found


@asynccontextmanager
async def _running(hosts: Hosts) -> AsyncIterator[Ways]:
    hosts.begin()
    await hosts.are_well()
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(Proxy(each.address)) for each in hosts.all]
        ways = Ways(hosts.all, proxies)
        leading = asyncio.create_task(ways.run())
        try:
            yield ways
        finally:
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
    for each in hosts.all:
        assert "Traceback" not in each.log()
