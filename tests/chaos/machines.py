"""Two machines with a server and a store each, and a third one for the vote: the page two-machines.

All run on ports of this machine. What one machine says to another goes through proxies, which can
cut it off.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from bench.processes import reserved_port
from tests.chaos.processes import SERVER, START_LIMIT_S
from tests.chaos.proxy import Address, Proxy, Way
from tests.chaos.twin import Twin
from tests.store.sentinels import COUNT, SERVICE, Sentinel
from tests.store.servers import ValkeyServer

# As in the compose file.
_SENTINEL = {"down_after_ms": 2000, "failover_timeout_ms": 6000}
_STORE = {"appendonly": "yes", "appendfsync": "everysec", "repl-diskless-sync-delay": "0"}
LIMIT_S = START_LIMIT_S


class Store(ValkeyServer):
    """A Valkey that others find at the port of its proxy."""

    def __init__(self, port: int, outer: int, primary: int | None) -> None:
        follows = {} if primary is None else {"replicaof": f"127.0.0.1 {primary}"}
        announced = {"replica-announce-ip": "127.0.0.1", "replica-announce-port": str(outer)}
        super().__init__(port=str(port), **_STORE, **announced, **follows)
        self.port, self.outer = port, outer

    @property
    def info(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("INFO", "replication")
        return found


class Renaming(Proxy):
    """A proxy before a Sentinel, whose answers lead to proxies of one machine."""

    def __init__(self, upstream: Address, names: Mapping[int, int]) -> None:
        super().__init__(upstream)
        # Ports that are reserved have five digits each.
        self._names = {str(a).encode(): str(b).encode() for a, b in names.items()}

    async def _pass_on(self, link: Any, way: Way, data: bytes) -> None:
        if way is Way.DOWN:
            for one, other in self._names.items():
                data = data.replace(one, other)
        await super()._pass_on(link, way, data)


class HasServer:
    """A machine with a server."""

    twin: Twin


class Machine(HasServer):
    """A server, a store and a Sentinel, and how they reach the others."""

    def __init__(self, store: Store, voter: Sentinel, outer: Proxy) -> None:
        self.store, self.voter = store, voter
        # By which other stores and Sentinels reach the store.
        self.outer = outer
        # By which the server of another machine reaches this one, and the server here the others.
        self.ways: list[Proxy] = []
        self.url = ""

    def cut_off(self) -> None:
        for each in (self.outer, *self.ways):
            each.black_hole()

    def heal(self) -> None:
        for each in (self.outer, *self.ways):
            each.heal()
            # What was lost must not be followed by anything.
            each.reset()


M = TypeVar("M", bound=HasServer)


class Pair(Generic[M]):
    """The first two of some machines have servers on one store."""

    def __init__(self, home: Path, stack: AsyncExitStack, settings: Mapping[str, Any]) -> None:
        self._home, self._stack, self._settings = home, stack, settings
        self.all: list[M] = []

    def _start_with(self, url: str, name: str, program: Sequence[str] = SERVER) -> Twin:
        home = self._home / name
        home.mkdir()
        given = {"redis": url, "node": name, **self._settings}
        twin = Twin(home, given, program)
        self._stack.push_async_callback(twin.close)
        return twin

    @property
    def twins(self) -> list[Twin]:
        return [machine.twin for machine in self.all[:2]]

    async def active(self) -> M:
        """Return the machine whose server serves."""
        for _ in range(600):
            for machine in self.all[:2]:
                if (await machine.twin.readiness())[0] == 200:
                    return machine
            await asyncio.sleep(0.1)
        raise AssertionError("no server serves")

    def other(self, machine: M) -> M:
        return self.all[1] if machine is self.all[0] else self.all[0]

    async def begin(self) -> None:
        """Start both servers; the first one serves."""
        for each in self.twins:
            each.begin()
            if each is self.twins[0]:
                await each.serves()

    async def are_well(self) -> None:
        """Wait until one server serves and the other one waits, on a store that is whole."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + LIMIT_S
        # One that gets no processor for as long as its lease lasts changes places with the other.
        while not await self.other(await self.active()).twin.is_waiting():
            assert loop.time() < ends, "\n".join(each.log() for each in self.twins)
            await asyncio.sleep(0.1)
        await self.are_whole()

    async def are_whole(self) -> None:
        """Wait until the store can lose a server without losing a message."""
        raise NotImplementedError


class Machines(Pair[Machine]):
    """Two machines with servers and a third one without, which begins as the smallest."""

    async def __aenter__(self) -> Self:
        ports = [self._stack.enter_context(reserved_port()) for _ in range(6)]
        outers = [await self._proxy(Address("127.0.0.1", port)) for port in ports[:3]]
        primary = outers[0].port
        for number in range(3):
            follows = primary if number else None
            store = self._stack.enter_context(Store(ports[number], outers[number].port, follows))
            voter = self._stack.enter_context(Sentinel(ports[COUNT + number], primary, **_SENTINEL))
            self.all.append(Machine(store, voter, outers[number]))
        for number, name in enumerate(("one", "two")):
            await self._connect(self.all[number])
            self.all[number].twin = self._start_with(self.all[number].url, name)
        await until(lambda: all(each.voter.knows_all(replicas=2) for each in self.all))
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def _proxy(self, upstream: Address, names: Mapping[int, int] | None = None) -> Proxy:
        proxy = Proxy(upstream) if names is None else Renaming(upstream, names)
        return await self._stack.enter_async_context(proxy)

    async def _connect(self, machine: Machine) -> None:
        """Give a machine ways of its own to all stores and Sentinels."""
        names: dict[int, int] = {}
        for each in self.all:
            way = await self._proxy(Address("127.0.0.1", each.store.port))
            names[each.store.outer] = way.port
            _between(machine, each, way)
        voters = []
        for each in self.all:
            way = await self._proxy(Address("127.0.0.1", each.voter.port), names)
            voters.append(f"127.0.0.1:{way.port}")
            _between(machine, each, way)
        machine.url = f"redis+sentinel://{','.join(voters)}/{SERVICE}"

    @property
    def primary(self) -> Machine:
        """Return the machine whose store the vote has made the primary."""
        ports = [each.voter.primary for each in self.all if each.voter.is_running]
        named = max(ports, key=ports.count)
        return next(each for each in self.all if each.store.outer == named)

    async def are_whole(self) -> None:
        """Wait until two replicas follow the primary, and all Sentinels know it."""

        def is_whole() -> bool:
            info = self.primary.store.info
            replicas = [value for key, value in info.items() if key.startswith("slave")]
            online = [each for each in replicas if "online" in str(each)]
            return info["role"] == "master" and len(online) == 2

        await until(is_whole)


def _between(one: Machine, other: Machine, way: Proxy) -> None:
    """Let a proxy be cut when one of both machines is cut off."""
    if one is not other:
        one.ways.append(way)
        other.ways.append(way)


async def until(is_so: Any, limit_s: float = LIMIT_S) -> None:
    """Wait until something holds; what cannot be asked now does not."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + limit_s
    while True:
        try:
            if await asyncio.to_thread(is_so):
                return
        except Exception:
            if loop.time() > ends:
                raise
        assert loop.time() < ends, "it did not happen in time"
        await asyncio.sleep(0.05)
