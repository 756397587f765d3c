"""Stock clients with named sessions miss nothing while machines of the page "Two machines" fail.

-s shows how long they were silent.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import pytest

from tests.chaos.doors import door_to
from tests.chaos.machines import Machines, until
from tests.chaos.test_two_machines import SETTINGS
from tests.clients.deployment import Restart
from tests.clients.node_client import require_java
from tests.clients.story import SUITES, Story

# A session of curl ends with its client id: it is too simple to begin again.
NAMED = {
    suite: [each for each in its if each["session"] and each["client"] != "curl"]
    for suite, its in SUITES.items()
}
FROZEN_S = 8.0
_LIMIT_S = 300.0
T = TypeVar("T")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Playground:
    """Machines whose loop runs in another thread, and the door to the server that serves."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.machines: Machines
        self.url = ""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_LIMIT_S)

    async def set_up(self, home: Path, stack: AsyncExitStack) -> None:
        self.machines = Machines(home, stack, {**SETTINGS, "workers": 2, "max_queue": 100_000})
        await stack.enter_async_context(self.machines)
        await self.machines.begin()
        door = await stack.enter_async_context(door_to("follower", home, self.machines))
        self.url = door.url
        await self.machines.are_well()

    def deed(self, do: Callable[[], Awaitable[None]]) -> Callable[[], Restart]:
        """Return what does something, waits until others have taken over, and repairs it."""

        async def done() -> None:
            await do()
            await self.machines.are_well()

        def do_it() -> Restart:
            begun_s = time.time()
            self.run(done())
            return Restart(begun_s, time.time())

        return do_it

    async def kill_server(self) -> None:
        one = await self.machines.active()
        await one.twin.kill_all()
        await self.machines.active()
        one.twin.begin()

    async def freeze_server(self) -> None:
        one = await self.machines.active()
        await one.twin.signal_all(signal.SIGSTOP)
        await self.machines.other(one).twin.serves()
        await asyncio.sleep(FROZEN_S - 4)
        await one.twin.signal_all(signal.SIGCONT)

    async def kill_primary(self) -> None:
        one = self.machines.primary
        one.store.kill()
        await until(lambda: self.machines.primary is not one)
        one.store.start()

    async def update_both(self) -> None:
        active = await self.machines.active()
        for each in (self.machines.other(active).twin, active.twin):
            assert await each.restart() == ""


@contextmanager
def playground(home: Path) -> Iterator[Playground]:
    loop, stack = asyncio.new_event_loop(), AsyncExitStack()
    thread = Thread(target=loop.run_forever)
    thread.start()
    found = Playground(loop)
    try:
        found.run(found.set_up(home, stack))
        yield found
        for each in found.machines.twins:
            assert "Traceback" not in each.log()
    finally:
        found.run(stack.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_stock_clients_with_names_miss_nothing_while_machines_fail(tmp_path: Path) -> None:
    require_java()
    with playground(tmp_path) as found:
        story = Story(found, tmp_path, NAMED)
        deeds = (found.kill_server, found.freeze_server, found.kill_primary, found.update_both)
        story.play([found.deed(each) for each in deeds])
        sys.stdout.write(f"\n{story.figures()}")
        assert story.misses() == []
