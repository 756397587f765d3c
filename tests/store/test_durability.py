"""What a reply to a publish promises when replicas, or somebody else's server, must keep it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from holdfast.compose.storage import open_storage
from holdfast.delivery.outcomes import ACKED
from holdfast.delivery.persist_outcome import PersistOutcome
from holdfast.settings import Settings
from holdfast.store import replicas
from holdfast.store.connection import StoreUnavailable
from holdfast.store.keys import RedisKeys
from holdfast.store.reader import open_reader
from holdfast.store.replicas import Replicas
from holdfast.store.store import Store
from tests.serving import free_port
from tests.store.desk import ids, message, session, until
from tests.store.servers import ValkeyServer

ALWAYS = {"appendonly": "yes", "appendfsync": "always"}


@pytest.fixture
def primary() -> Iterator[ValkeyServer]:
    with ValkeyServer(port=str(free_port()), **{"repl-diskless-sync-delay": "0"}, **ALWAYS) as it:
        yield it


@pytest.fixture
def replica(primary: ValkeyServer) -> Iterator[ValkeyServer]:
    with ValkeyServer(**ALWAYS) as it:
        it.follow(primary)
        yield it


@asynccontextmanager
async def opened(server: ValkeyServer, durability: str) -> AsyncIterator[Store]:
    """The store of a server with this setting."""
    given: dict[str, Any] = {"redis": server.url, "durability": durability}
    settings = Settings(**given)
    async with AsyncExitStack() as stack:
        yield (await open_storage(settings, stack, lambda: None)).store


class Publisher:
    """Publishes and remembers what it heard."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.heard: dict[int, list[PersistOutcome]] = {}

    def keep(self, n: int, key: str = "") -> None:
        self._store.keep(message(n, key=key), ["joe/1"], self.heard.setdefault(n, []).append)

    async def hears(self, n: int, *kept: PersistOutcome) -> None:
        await until(lambda: len(self.heard[n]) >= len(kept))
        assert self.heard[n] == list(kept)


def has(server: ValkeyServer, n: int) -> bool:
    return bool(server.ask("HEXISTS", RedisKeys("holdfast").bodies, ids(n)[0]))


async def test_what_a_replica_has_in_its_file_is_kept(
    primary: ValkeyServer, replica: ValkeyServer
) -> None:
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        for n in range(20):
            publisher.keep(n)
            await asyncio.sleep(0.001)
        await publisher.hears(19, PersistOutcome.KEPT)
        assert publisher.heard == {n: [PersistOutcome.KEPT] for n in range(20)}
        primary.kill()
        replica.restart()
        assert all(has(replica, n) for n in range(20))


async def test_nobody_knows_of_what_no_replica_confirms_and_the_line_goes_on(
    primary: ValkeyServer,
    replica: ValkeyServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(replicas, "_TIMEOUT_MS", 1000)
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        replica.freeze()
        publisher.keep(1)
        # Behind it, in less time than the replica has.
        store.save(session("joe/1"))
        saved = asyncio.Event()
        store.after(saved.set)
        await saved.wait()
        assert publisher.heard == {1: []}
        # Shown then: the store has it.
        await publisher.hears(1, PersistOutcome.UNKNOWN, PersistOutcome.KEPT)
        publisher.keep(2)
        await publisher.hears(2, PersistOutcome.UNKNOWN, PersistOutcome.KEPT)
        replica.thaw()
        monkeypatch.undo()
        publisher.keep(3)
        await publisher.hears(3, PersistOutcome.KEPT)
    assert caplog.text.count("too few replicas confirm messages") == 1
    assert "enough replicas store messages again" in caplog.text


@pytest.mark.usefixtures("replica")
async def test_two_replicas_are_more_than_one(
    primary: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "_TIMEOUT_MS", 200)
    async with opened(primary, "replicas:2") as store:
        publisher = Publisher(store)
        publisher.keep(1)
        await publisher.hears(1, PersistOutcome.UNKNOWN, PersistOutcome.KEPT)


async def test_what_comes_while_replicas_are_awaited_is_confirmed_together(
    primary: ValkeyServer, replica: ValkeyServer
) -> None:
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        replica.freeze()
        for n in range(30):
            publisher.keep(n)
            await asyncio.sleep(0.002)
        replica.thaw()
        await publisher.hears(29, PersistOutcome.KEPT)
        assert publisher.heard == {n: [PersistOutcome.KEPT] for n in range(30)}
    stats = primary.ask("INFO", "commandstats")
    # One at the start, and three for each of few times.
    assert stats["cmdstat_waitaof"]["calls"] <= 1 + 3 * 4


@pytest.mark.usefixtures("replica")
async def test_a_repeat_is_confirmed_like_the_message_that_it_repeats(
    primary: ValkeyServer,
) -> None:
    """Whose body is gone, or never was there."""
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        publisher.keep(1, key="k")
        await publisher.hears(1, PersistOutcome.KEPT)
        store.settle("joe/1", ids(1), ACKED)
        publisher.keep(2, key="k")
        await publisher.hears(2, PersistOutcome.REPEATED)
        store.keep(message(3, key="l"), [], publisher.heard.setdefault(3, []).append)
        await publisher.hears(3, PersistOutcome.KEPT)
        primary.ask("FLUSHALL")
    asked = Replicas(open_reader(primary.url), RedisKeys("holdfast"), 1)
    answers: list[bool] = []
    asked.confirm([f"k:{ids(1)[0]}"], answers.append)
    await until(lambda: len(answers) == 1)
    assert answers == [False]
    await asked.close()


async def test_a_connection_that_is_lost_while_it_waits_says_nothing(
    primary: ValkeyServer, replica: ValkeyServer
) -> None:
    """A new one has written nothing, so every replica has all of that."""
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        replica.freeze()
        publisher.keep(1)
        await until(lambda: primary.ask("INFO", "clients")["blocked_clients"] == 1)
        primary.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await publisher.hears(1, PersistOutcome.UNKNOWN, PersistOutcome.KEPT)
        replica.thaw()
        await until(lambda: store.is_available)
        publisher.keep(2)
        await publisher.hears(2, PersistOutcome.KEPT)


@pytest.mark.usefixtures("replica")
async def test_a_server_without_the_message_confirms_nothing(primary: ValkeyServer) -> None:
    """It took the place of the one that kept it."""
    asked = Replicas(open_reader(primary.url), RedisKeys("holdfast"), 1)
    answers: list[bool] = []
    await asked.open()
    asked.confirm(ids(1), answers.append)
    await until(lambda: len(answers) == 1)
    assert (answers, primary.ask("DBSIZE")) == ([False], 0)
    await asked.close()


@pytest.mark.usefixtures("replica")
async def test_a_primary_without_a_file_is_warned_of(
    primary: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    primary.set(appendonly="no")
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        publisher.keep(1)
        await publisher.hears(1, PersistOutcome.KEPT)
    assert "appendonly no" in caplog.text


def test_a_store_of_its_own_has_no_replicas() -> None:
    given: dict[str, Any] = {"durability": "replicas:1"}
    with pytest.raises(ValidationError, match="durability replicas:1 needs redis"):
        Settings(**given)


async def test_a_server_that_does_not_know_of_files_of_replicas_is_refused(
    tmp_path: Path,
) -> None:
    """As those before 7.2 do not."""
    (tmp_path / "old").write_text('rename-command WAITAOF ""\n')
    with ValkeyServer(include=str(tmp_path / "old")) as old:
        with pytest.raises(StoreUnavailable, match=r"replicas:1 needs WAITAOF.*7\.2"):
            async with opened(old, "replicas:1"):
                pass
        async with opened(old, "everysec") as store:
            assert store.is_available


# Somebody else's server


@pytest.mark.parametrize(
    ("durability", "config", "loss"),
    [
        ("memory", {"appendonly": "no"}, ""),
        ("everysec", {"appendonly": "no"}, "appendonly no"),
        ("everysec", {"appendonly": "yes", "appendfsync": "no"}, "appendfsync no"),
        ("everysec", {"appendonly": "yes", "appendfsync": "everysec"}, ""),
        ("always", {"appendonly": "no", "appendfsync": "always"}, "appendonly no"),
        ("always", {"appendonly": "yes", "appendfsync": "everysec"}, "last second or two"),
        ("always", ALWAYS, ""),
    ],
)
async def test_what_a_weaker_server_loses_is_said(
    durability: str,
    config: dict[str, str],
    loss: str,
    valkey: ValkeyServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    valkey.set(**config)
    async with opened(valkey, durability):
        pass
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert [loss in warning for warning in warnings] == ([True] if loss else [])


async def test_a_server_that_does_not_show_its_settings_is_used(
    valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    valkey.ask("ACL", "SETUSER", "default", "-config")
    async with opened(valkey, "always") as store:
        assert store.is_available
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
