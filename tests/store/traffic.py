"""Calls and publishes all the time, while the servers of a store change."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.compose.data_directory import own_directory
from holdfast.compose.opening import open_storage
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import Settings
from holdfast.store.store import Store
from tests.slowness import times_slower
from tests.store.caller import Caller, until
from tests.store.servers import TAG, ValkeyServer
from tests.store.store_process import message


class Traffic:
    """Calls, five at a time."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            self._caller.note(5)
            await asyncio.sleep(0.002)

    async def for_a_moment(self) -> None:
        """Wait until further calls are answered."""
        noted = self._caller.noted
        await until(lambda: len(self._caller.answers) > noted)

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


@asynccontextmanager
async def traffic(caller: Caller) -> AsyncIterator[Traffic]:
    """Calls, each of which is answered once and in order."""
    running = Traffic(caller)
    await running.for_a_moment()
    yield running
    await running.for_a_moment()
    await running.end()
    assert await caller.answered() == [b"%d" % number for number in range(caller.noted)]


def noted_at(server: ValkeyServer) -> list[int]:
    """The numbers in the list of the calls."""
    return [*map(int, server.ask("LRANGE", f"{TAG}list", 0, -1))]


async def lost_by_failover(caller: Caller, accident: Callable[[], None]) -> set[int]:
    """Have a failover under traffic. Returns the calls that it may lose.

    A replica lacks what its primary has not sent yet: less than half a second.
    """
    await asyncio.sleep(0.2)
    safe = len(caller.answers)
    await asyncio.sleep(0.5 * times_slower(most=5.0))
    accident()
    answered = len(caller.answers)
    await until(lambda: len(caller.answers) > answered + 1000)
    return {*range(safe, answered)}


def assert_kept(server: ValkeyServer, caller: Caller, may_lack: set[int]) -> None:
    """Each call is there once, in its place."""
    found = noted_at(server)
    assert found == sorted({*found})
    assert {*range(caller.noted)} - {*found} <= may_lack


class Publisher:
    """Keeps a message every few milliseconds, and remembers the outcomes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.outcomes: list[list[PersistOutcome]] = []
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            outcomes: list[PersistOutcome] = []
            self._store.keep(message(len(self.outcomes)), ["joe/1"], outcomes.append)
            self.outcomes.append(outcomes)
            await asyncio.sleep(0.005)

    async def gets(self, outcome: PersistOutcome) -> None:
        """Wait until a message that is published from now on has this outcome first."""
        begin = len(self.outcomes)
        await until(lambda: any(each[:1] == [outcome] for each in self.outcomes[begin:]))

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def kept(self) -> list[int]:
        """The messages whose publishers got a success."""
        first = PersistOutcome.KEPT
        return [number for number, each in enumerate(self.outcomes) if each[:1] == [first]]


@asynccontextmanager
async def storing(url: str, **given: Any) -> AsyncIterator[Store]:
    """An open store with these settings."""
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-test-"))
        settings = Settings(redis=url, namespace="test", data=Path(home), **given)
        directory = stack.enter_context(own_directory(settings.data))
        yield (await open_storage(settings, directory, stack, lambda: None)).store


@asynccontextmanager
async def publishing(url: str) -> AsyncIterator[Publisher]:
    """A store whose messages a replica must have, and a publisher."""
    async with storing(url, durability="replicas:1") as store:
        publisher = Publisher(store)
        await publisher.gets(PersistOutcome.KEPT)
        yield publisher
        await publisher.end()
