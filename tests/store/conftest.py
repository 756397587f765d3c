"""What tests of the store share: real servers, and the event loop of the product."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import uvloop
from redis import Redis

from tests.simulation.store.served import ServedStore
from tests.store.hall import Scene, stage
from tests.store.places import kill_orphans_in
from tests.store.servers import ValkeyServer
from tests.store.store_process import StoreProcess, store_process


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def data() -> Iterator[Path]:
    """A data directory with a short name; processes that still use it at the end are killed."""
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as home:
        yield Path(home)
        kill_orphans_in(Path(home))


@pytest.fixture
def valkey() -> Iterator[ValkeyServer]:
    """A server for one test, which may change or kill it."""
    with ValkeyServer() as server:
        yield server


@pytest.fixture
def durable_valkey() -> Iterator[ValkeyServer]:
    """A server that loses nothing when it is killed."""
    with ValkeyServer(appendonly="yes", appendfsync="always") as server:
        yield server


@pytest.fixture(scope="session")
def _running_valkey() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


@pytest.fixture(scope="session")
def _running_fake() -> Iterator[ServedStore]:
    with ServedStore() as server:
        yield server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests against the store of the simulation, too, so that it stays like the real one."""
    is_about_valkey = metafunc.definition.get_closest_marker("valkey") is not None
    if "shared_valkey" in metafunc.fixturenames and not is_about_valkey:
        metafunc.parametrize("shared_valkey", ["valkey", "fake"], indirect=True)


@pytest.fixture
def shared_valkey(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    """An empty server that tests share; they change nothing but its data."""
    if getattr(request, "param", "valkey") == "valkey":
        running: ValkeyServer = request.getfixturevalue("_running_valkey")
        running.ask("FLUSHALL")
        running.ask("SCRIPT", "FLUSH")
        yield running
    else:
        fake: ServedStore = request.getfixturevalue("_running_fake")
        fake.reset()
        yield fake
        fake.check()


@pytest.fixture
async def at(shared_valkey: ValkeyServer) -> AsyncIterator[StoreProcess]:
    """A process at work with an empty store."""
    async with store_process(shared_valkey) as at:
        yield at


@pytest.fixture
async def scene(shared_valkey: ValkeyServer) -> AsyncIterator[Scene]:
    """A process at work with an empty store, its sessions, and its replays."""
    async with stage(shared_valkey) as scene:
        yield scene


@pytest.fixture
def redis(shared_valkey: ValkeyServer) -> Iterator[Redis]:
    """A connection of its own to an empty server."""
    with Redis.from_url(shared_valkey.url) as redis:
        yield redis
