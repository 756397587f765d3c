"""Three hosts with six shards on one store, and what leads clients to a host that serves.

All run on this machine, each at a loopback address of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from bench.processes import reserved_port
from tests.chaos.proxy import Proxy
from tests.chaos.twin import LIMIT_S, Twin
from tests.store.servers import ValkeyServer
from tests.web.certificates import Authority

SHARDS = 6
NAMES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
# How often it is looked which hosts are ready, as a health check does.
_LOOK_S = 0.5


class Hosts:
    """The hosts of a deployment, on the store at this URL."""

    def __init__(
        self, home: Path, stack: AsyncExitStack, url: str, settings: Mapping[str, Any]
    ) -> None:
        authority = Authority(home)
        ports = [stack.enter_context(reserved_port()) for _ in NAMES]
        hosts = [f"{name}:{port}" for name, port in zip(NAMES, ports, strict=True)]
        self.all: list[Twin] = []
        for name in NAMES:
            cert, key = authority.issue(name, at=name)
            own = {
                "redis": url,
                "hosts": hosts,
                "own_host": name,
                "shards": SHARDS,
                "standby": False,
                "link_cert": str(cert),
                "link_key": str(key),
                "link_ca": str(authority.file),
                **settings,
            }
            directory = home / name
            directory.mkdir()
            twin = Twin(directory, own)
            stack.push_async_callback(twin.close)
            self.all.append(twin)

    def begin(self) -> None:
        for each in self.all:
            each.begin()

    async def are_well(self) -> None:
        """Wait until all of them are ready."""
        for each in self.all:
            await each.serves()


class Ways:
    """A way to each host; if that is not ready, to another one. Clients have one each."""

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
            is_ready = (await host.readiness())[0] == 200
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
                proxy.reset()


@asynccontextmanager
async def three_hosts(home: Path, **settings: Any) -> AsyncIterator[tuple[Hosts, Ways]]:
    """Run three hosts on a Valkey, with ways to them."""
    async with AsyncExitStack() as stack:
        port = stack.enter_context(reserved_port())
        stack.enter_context(ValkeyServer(port=str(port), appendonly="yes"))
        hosts = Hosts(home, stack, f"redis://127.0.0.1:{port}", settings)
        hosts.begin()
        await asyncio.wait_for(hosts.are_well(), LIMIT_S)
        proxies = [await stack.enter_async_context(Proxy(each.address)) for each in hosts.all]
        ways = Ways(hosts.all, proxies)
        leading = asyncio.create_task(ways.run())
        try:
            yield hosts, ways
        finally:
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
        for each in hosts.all:
            assert "Traceback" not in each.log()
