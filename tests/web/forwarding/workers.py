"""Workers of one deployment in this process, each with a store, and clients at any door."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.compose import running
from holdfast.compose.placement import Placement, placed
from holdfast.compose.running_server import RunningServer
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.store.local import valkey_process
from holdfast.store.local.valkey_process import ValkeyProcess
from holdfast.web.tasks import cancel
from tests.store.store_process import until
from tests.web.people import Person


class Workers:
    """The servers, by the number of their shard."""

    def __init__(self, servers: list[RunningServer], stack: AsyncExitStack) -> None:
        self.servers = servers
        self._stack = stack

    @property
    def urls(self) -> list[str]:
        return [each.url for each in self.servers]

    def sessions(self, shard: int) -> list[Any]:
        return [*self.servers[shard].bayeux.state.sessions]

    @property
    def counts(self) -> list[int]:
        """How many sessions each shard has."""
        return [len(self.sessions(shard)) for shard in range(len(self.servers))]

    def person(self, door: int, **headers: str) -> Person:
        """A client at a door."""
        person = Person(self.urls[door], **headers)
        self._stack.push_async_callback(person.http.close)
        return person

    def at(self, door: int, person: Person) -> Person:
        """The same client at another door."""
        other = self.person(door)
        other.http.cookie_jar.update_cookies(
            {each.key: each.value for each in person.http.cookie_jar}
        )
        other.client_id = person.client_id
        return other

    def home_of(self, subject: str) -> int:
        ids = self.servers[0].bayeux.state.client_ids
        return int(not ids.owns(ids.bucket_of(subject)))

    async def delay(self, door: int, home: int, seconds: float) -> None:
        """Let everything between a door and a home take this long in each direction."""
        forwarding = self.servers[door].forwarding
        assert forwarding is not None
        path = forwarding._placement.link_of(home)
        behind = path.with_name("behind")
        path.rename(behind)
        await self._stack.enter_async_context(relay(path, behind, seconds))
        link = forwarding._far[home]._link
        assert link is not None
        link.abort()
        await until(lambda: not forwarding.is_linked)
        await linked(self.servers[door])

    async def hide(self, home: int, door: int = 0) -> None:
        """End the link from a door to a home, and let the door make no other until `show`."""
        forwarding = self.servers[door].forwarding
        assert forwarding is not None
        path = forwarding._placement.link_of(home)
        path.rename(path.with_name("hidden"))
        link = forwarding._far[home]._link
        assert link is not None
        link.abort()
        await until(lambda: not forwarding.is_linked)

    async def show(self, home: int, door: int = 0) -> None:
        """Let a door have its link to a home again."""
        forwarding = self.servers[door].forwarding
        assert forwarding is not None
        path = forwarding._placement.link_of(home)
        path.with_name("hidden").rename(path)
        await linked(self.servers[door])

    def subject_of(self, shard: int, prefix: str = "user") -> str:
        """A subject whose home a shard is."""
        return next(
            name for name in (f"{prefix}{n}" for n in range(99)) if self.home_of(name) == shard
        )


async def linked(server: RunningServer) -> None:
    forwarding = server.forwarding
    assert forwarding is not None
    await until(lambda: forwarding.is_linked)


def give_nothing(server: RunningServer) -> None:
    """Let a worker keep all its connections."""
    assert server.forwarding is not None
    server.forwarding._giving = None
    for far in server.forwarding._far.values():
        far.on_entered = None
    server.listener.give_first_by(lambda _, __: False)


@asynccontextmanager
async def relay(path: Path, behind: Path, seconds: float) -> AsyncIterator[None]:
    """Pass on what arrives at one Unix socket to another, and back, so much later."""
    tasks: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await reader.read(1 << 16):
                loop.call_later(seconds, writer.write, data)
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_unix_connection(behind)
        for each in (pass_on(reader, other_writer), pass_on(other_reader, writer)):
            tasks.add(asyncio.create_task(each))

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield
    finally:
        server.close()
        for task in tasks:
            await cancel(task)


def store_of(server: RunningServer) -> ValkeyProcess:
    embedded = server.storage._embedded
    assert embedded is not None
    assert embedded._process is not None
    return embedded._process


async def end(stores: list[ValkeyProcess]) -> None:
    for store in stores:
        await valkey_process.stop(store)


class Worker:
    """A worker that starts and stops while others do."""

    def __init__(
        self, settings: Settings, place: Placement, succession: Succession | None = None
    ) -> None:
        self._succession = succession or Succession()
        self._is_over = asyncio.Event()
        self._ready: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(settings, place))

    async def _serve(self, settings: Settings, place: Placement) -> None:
        async with running(settings, self._succession, place) as server:
            self._ready.set_result(server)
            await self._is_over.wait()

    async def started(self) -> RunningServer:
        either: list[asyncio.Future[Any]] = [self._ready, self._task]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            # It raises what kept the worker from starting.
            await self._task
        return await self._ready

    def stop(self) -> None:
        self._is_over.set()

    async def ended(self) -> None:
        await self._task


@asynccontextmanager
async def workers(
    home: Path, count: int = 2, *, give: bool = False, **given: Any
) -> AsyncIterator[Workers]:
    """Start workers at the same time, and wait until each has links to all others.

    Each waits for the stores of the others. Unless they `give` connections to each other, they
    forward everything.
    """
    settings = Settings(**{"port": 0, "data": home / "data", "journal": False, **given})
    stores: list[ValkeyProcess] = []
    async with AsyncExitStack() as stack:
        # A server that has left its place leaves its store to the next.
        stack.push_async_callback(end, stores)
        begun = [Worker(settings, placed(settings, number, count)) for number in range(count)]
        for each in begun:
            stack.push_async_callback(each.ended)
        for each in begun:
            stack.callback(each.stop)
        servers = [await each.started() for each in begun]
        stores += map(store_of, servers)
        for server in servers:
            await linked(server)
            if not give:
                give_nothing(server)
        yield Workers(servers, stack)
