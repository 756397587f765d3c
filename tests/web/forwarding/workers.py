"""Workers of one deployment in this process, each with a store, and clients at any door."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.compose import running
from holdfast.compose.placement import placed
from holdfast.compose.running_server import RunningServer
from holdfast.compose.succession import NoSuccession
from holdfast.settings import Settings
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

    def subject_of(self, shard: int, prefix: str = "user") -> str:
        """A subject whose home a shard is."""
        return next(
            name for name in (f"{prefix}{n}" for n in range(99)) if self.home_of(name) == shard
        )


async def linked(server: RunningServer) -> None:
    forwarding = server.forwarding
    assert forwarding is not None
    await until(lambda: forwarding.is_linked)


@asynccontextmanager
async def workers(home: Path, count: int = 2, **given: Any) -> AsyncIterator[Workers]:
    """Start workers, and wait until each has links to all others."""
    settings = Settings(**{"port": 0, "data": home / "data", "journal": False, **given})
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(
                running(settings, NoSuccession(), placed(settings, number, count))
            )
            for number in range(count)
        ]
        for server in servers:
            await linked(server)
        yield Workers(servers, stack)
