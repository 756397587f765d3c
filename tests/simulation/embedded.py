"""The stores that servers of a simulated machine start for themselves: processes of Valkey."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

from holdfast.store.local import embedded, home
from tests.simulation.environment import running_process
from tests.simulation.files import Files
from tests.simulation.holdings import Handle, LockFile
from tests.simulation.loop import SimLoop
from tests.simulation.process import Life, Running
from tests.simulation.store.node import Node
from tests.simulation.store_site import StoreSite
from tests.simulation.world import World

# How long Valkey takes to begin, and to obey a SIGTERM, at most, in seconds.
_BEGINS_S, _OBEYS_S = 0.1, 0.3


class Valkey:
    """A process that a server has started, which may outlive it."""

    def __init__(self, world: World, node: Node, lock: Handle, then: Callable[[], None]) -> None:
        self._world = world
        self._node = node
        self._lock = lock
        self._then = then
        self.pid = node.pid = world.next_pid()
        self.returncode: int | None = None
        self._waiting: list[tuple[Running, asyncio.Future[int]]] = []
        self._code = -signal.SIGKILL

    async def wait(self) -> int:
        """Wait for its end, as its parent; returns its exit code."""
        if self.returncode is None:
            process = running_process()
            assert isinstance(process, Running)
            ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._waiting.append((process, ended))
            return await ended
        return self.returncode

    def take_signal(self, number: int) -> None:
        """Do what a signal says; in order, unless it is frozen."""
        if number == signal.SIGKILL:
            self.end()
        elif number == signal.SIGTERM:
            self._world.later(_OBEYS_S * self._world.random.random(), self._obey)

    def _obey(self) -> None:
        if self.returncode is None and not self._node.is_frozen:
            self._code = 0
            self.end()

    def end(self) -> None:
        """End at once. What it has written stays."""
        if self.returncode is None and self._node.is_running:
            self._node.crash()

    def ended(self) -> None:
        """Note that it has ended, in whichever way."""
        if self.returncode is None:
            self.returncode = self._code
            self._lock.close()
            self._then()
            for process, ended in self._waiting:
                if process.life is not Life.ENDED:
                    loop = ended.get_loop()
                    assert isinstance(loop, SimLoop)
                    loop.wake(partial(_tell, ended, self._code))


def _tell(ended: "asyncio.Future[int]", code: int) -> None:
    if not ended.done():
        ended.set_result(code)


class Stores:
    """The Valkey processes of a machine, by their directories."""

    def __init__(self, world: World, site: StoreSite) -> None:
        self._world = world
        self._site = site
        self._nodes: dict[str, Node] = {}
        self._running: dict[int, Valkey] = {}

    def place(self, data: Path, shard: int) -> None:
        """Let the store of a shard be in this data directory."""
        self._nodes[str(home.Home(data).directory)] = self._site.own_node(shard)

    def process(self, pid: int) -> Valkey | None:
        return self._running.get(pid)

    def end_all(self) -> None:
        """End all; their files have everything."""
        for each in [*self._running.values()]:
            each.end()

    def cut_power(self) -> None:
        """End all, as a machine without power."""
        for node in self._nodes.values():
            self._site.cut_power(node, self._world.random)
        # Others begin.
        self.end_all()

    def start(self, words: Sequence[str], locks: Sequence[int]) -> Valkey:
        """Start one, as the parent does."""
        pairs = zip(words[::2], words[1::2], strict=True)
        given = {name.removeprefix("--"): value for name, value in pairs}
        node = self._nodes[given["dir"]]
        for name, value in given.items():
            node.settings.set(name, value)
        lock = LockFile(locks[0])
        self._world.locked[os.fstat(locks[0]).st_ino] = lock
        self._world.network.places[given["unixsocket"]] = (node.host, node.port)
        valkey = Valkey(self._world, node, lock.new(), lambda: self._end(node))
        self._running[valkey.pid] = valkey
        node.on_crashed = valkey.ended
        begins_s = _BEGINS_S * self._world.random.random()
        self._world.later(begins_s, lambda: self._begin(node, valkey))
        return valkey

    def _begin(self, node: Node, valkey: Valkey) -> None:
        if valkey.returncode is None:
            # Whatever it has written it has, unless it keeps nothing on the disk.
            node.start(node.history.end if node.settings.has_file else None)
            self._site.began(node)
            self._world.coverage.mark("an embedded store was started")

    def _end(self, node: Node) -> None:
        self._running = {
            pid: each for pid, each in self._running.items() if each.returncode is None
        }
        self._site.host_of(node).stop()


class Owner(Protocol):
    """A process of a machine with such stores."""

    stores: Stores


class _Asyncio:
    """Stands for the module `asyncio` where servers start their store."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def create_subprocess_exec(_: str, *words: str, pass_fds: list[int], **__: Any) -> Valkey:
        process: Any = running_process()
        started: Valkey = process.unit.stores.start(words, pass_fds)
        return started


async def _took_over(real: Any, valkey: embedded.EmbeddedValkey) -> bool:
    found: bool = await real(valkey)
    process = running_process()
    if found and isinstance(process, Running):
        process.world.coverage.mark("an embedded store was adopted")
    return found


@contextmanager
def embedding() -> Iterator[None]:
    """Let servers start simulated stores."""
    real = embedded.EmbeddedValkey._adopt

    async def adopt(valkey: embedded.EmbeddedValkey) -> bool:
        return await _took_over(real, valkey)

    with ExitStack() as stack:
        stack.enter_context(patch.object(embedded, "asyncio", _Asyncio()))
        stack.enter_context(patch.object(embedded, "os", Files))
        stack.enter_context(patch.object(home, "os", Files))
        stack.enter_context(patch.object(embedded, "server_binary", lambda: Path("valkey-server")))
        stack.enter_context(patch.object(embedded.EmbeddedValkey, "_adopt", adopt))
        yield
