"""What a reply to a publish promises if replicas, or a server that others run, must keep it."""

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bench.processes import reserved_port
from holdfast.compose.data_directory import own_directory
from holdfast.compose.opening import open_storage
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader
from holdfast.store.store import Store
from holdfast.store.writing import replicas
from holdfast.store.writing.replicas import Replicas
from holdfast.web.tasks import cancel
from tests.slowness import times_slower
from tests.store.servers import ValkeyServer, primary_at
from tests.store.store_process import ids, message, session, until

ALWAYS = {"appendonly": "yes", "appendfsync": "always"}


@pytest.fixture
def primary() -> Iterator[ValkeyServer]:
    settings = {"repl-diskless-sync-delay": "0", **ALWAYS}
    with reserved_port() as port, ValkeyServer(port=str(port), **settings) as it:
        yield it


@pytest.fixture
def replica(primary: ValkeyServer) -> Iterator[ValkeyServer]:
    with ValkeyServer(**ALWAYS) as it:
        it.follow(primary)
        yield it


@asynccontextmanager
async def opened(server: ValkeyServer, durability: str) -> AsyncIterator[Store]:
    """The store of a server with this setting."""
    async with AsyncExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-test-"))
        given: dict[str, Any] = {"redis": server.url, "durability": durability, "data": data}
        settings = Settings(**given)
        directory = stack.enter_context(own_directory(settings.data))
        yield (await open_storage(settings, directory, stack, lambda: None)).store


class Publisher:
    """Publishes, and remembers the outcomes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.outcomes: dict[int, list[PersistOutcome]] = {}

    def keep(self, n: int, key: str = "") -> None:
        self._store.keep(message(n, key=key), ["joe/1"], self.outcomes.setdefault(n, []).append)

    async def gets(self, n: int, *kept: PersistOutcome) -> None:
        await until(lambda: len(self.outcomes[n]) >= len(kept))
        assert self.outcomes[n] == list(kept)


async def confirmed(server: ValkeyServer, *stored: str) -> list[bool]:
    """Whether a replica has each of these, asked about one by one."""
    asked = Replicas(Reader(primary_at(server.url)), RedisKeys("holdfast"), 1)
    answers: list[bool] = []
    for each in stored:
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        asked.confirm([each], answer.set_result)
        answers.append(await answer)
    await asked.close()
    return answers


def has(server: ValkeyServer, n: int) -> bool:
    return bool(server.ask("HEXISTS", RedisKeys("holdfast").bodies, ids(n)[0]))


async def test_messages_confirmed_by_a_replica_survive_the_loss_of_the_primary(
    primary: ValkeyServer, replica: ValkeyServer
) -> None:
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        for n in range(20):
            publisher.keep(n)
            await asyncio.sleep(0.001)
        await publisher.gets(19, PersistOutcome.KEPT)
        assert publisher.outcomes == {n: [PersistOutcome.KEPT] for n in range(20)}
        primary.kill()
        replica.restart()
        assert all(has(replica, n) for n in range(20))


async def test_an_unconfirmed_message_has_an_unknown_outcome_and_does_not_delay_other_calls(
    primary: ValkeyServer,
    replica: ValkeyServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(replicas, "_TIMEOUT_MS", round(1000 * times_slower(most=5.0)))
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        replica.freeze()
        publisher.keep(1)
        # A call behind it is answered before the replica's time is over.
        store.save(session("joe/1"))
        saved = asyncio.Event()
        store.after(saved.set)
        await saved.wait()
        assert publisher.outcomes == {1: []}
        # It is delivered then: the store has it.
        await publisher.gets(1, PersistOutcome.UNKNOWN, PersistOutcome.KEPT)
        publisher.keep(2)
        await publisher.gets(2, PersistOutcome.UNKNOWN, PersistOutcome.KEPT)
        replica.thaw()
        monkeypatch.undo()
        publisher.keep(3)
        await publisher.gets(3, PersistOutcome.KEPT)
    assert caplog.text.count("too few replicas confirm messages") == 1
    assert "enough replicas store messages again" in caplog.text


@pytest.mark.usefixtures("replica")
async def test_a_message_that_needs_two_replicas_is_not_confirmed_by_one(
    primary: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "_TIMEOUT_MS", 200)
    async with opened(primary, "replicas:2") as store:
        publisher = Publisher(store)
        publisher.keep(1)
        await publisher.gets(1, PersistOutcome.UNKNOWN, PersistOutcome.KEPT)


async def test_messages_that_arrive_while_a_replica_is_awaited_are_confirmed_together(
    primary: ValkeyServer, replica: ValkeyServer
) -> None:
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        replica.freeze()
        publisher.keep(0)
        await until(lambda: primary.ask("INFO", "clients")["blocked_clients"] > 0)
        for n in range(1, 30):
            publisher.keep(n)
            await asyncio.sleep(0)
        replica.thaw()
        await publisher.gets(29, PersistOutcome.KEPT)
        assert publisher.outcomes == {n: [PersistOutcome.KEPT] for n in range(30)}
    stats = primary.ask("INFO", "commandstats")
    # One at the start, and three for each of a few rounds.
    assert stats["cmdstat_waitaof"]["calls"] <= 1 + 3 * 4


@pytest.mark.usefixtures("replica")
async def test_a_repeat_is_confirmed_by_its_key_when_the_body_is_gone(
    primary: ValkeyServer,
) -> None:
    """A message without receivers never has a body; without the key, nothing is confirmed."""
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        publisher.keep(1, key="k")
        await publisher.gets(1, PersistOutcome.KEPT)
        store.settle("joe/1", ids(1), ACKED)
        publisher.keep(2, key="k")
        await publisher.gets(2, PersistOutcome.REPEATED)
        store.keep(message(3, key="l"), [], publisher.outcomes.setdefault(3, []).append)
        await publisher.gets(3, PersistOutcome.KEPT)
    # A living server would tell the store the key again.
    primary.ask("FLUSHALL")
    assert await confirmed(primary, f"k:{ids(1)[0]}") == [False]


@pytest.mark.usefixtures("replica")
async def test_a_message_in_no_queue_is_confirmed_by_the_call_that_stored_it(
    primary: ValkeyServer,
) -> None:
    """Only other shards have receivers: the store has it in the log, and no body."""
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        publisher.keep(1)
        store.keep(message(2), [], publisher.outcomes.setdefault(2, []).append)
        await publisher.gets(2, PersistOutcome.KEPT)
        await publisher.gets(1, PersistOutcome.KEPT)
        epoch = store.epoch.rpartition(".")[2]
    calls = f"{epoch}-{1:012d}", f"{epoch}-{99:012d}", f"xxxxxxxx-{1:012d}"
    assert await confirmed(primary, *calls) == [True, False, False]


async def test_a_message_is_unknown_if_the_connection_that_confirms_it_is_lost(
    primary: ValkeyServer, replica: ValkeyServer
) -> None:
    """A new connection has written nothing, so that replicas would confirm everything."""
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        replica.freeze()
        publisher.keep(1)
        await until(lambda: primary.ask("INFO", "clients")["blocked_clients"] == 1)
        primary.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await publisher.gets(1, PersistOutcome.UNKNOWN, PersistOutcome.KEPT)
        replica.thaw()
        await until(lambda: store.is_available)
        publisher.keep(2)
        await publisher.gets(2, PersistOutcome.KEPT)


async def test_replicas_that_do_not_answer_are_noticed_without_a_message(
    primary: ValkeyServer, replica: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "_LOOK_S", 0.01)
    monkeypatch.setattr(replicas, "_TIMEOUT_MS", round(300 * times_slower(most=5.0)))
    asked = Replicas(Reader(primary_at(primary.url)), RedisKeys("holdfast"), 1)
    told: list[str] = []
    asked.on_change = lambda: told.append(asked.complaint)
    is_wanted, has_stopped = True, asyncio.Event()

    def wants() -> bool:
        if not is_wanted:
            # Only called while nothing is asked.
            has_stopped.set()
        return is_wanted

    watching = asyncio.create_task(asked.watch(wants))
    replica.freeze()
    await until(lambda: bool(told))
    assert "too few replicas confirm messages" in told[0]
    replica.thaw()
    await until(lambda: len(told) > 1)
    assert told[1:] == [""]
    is_wanted = False
    await has_stopped.wait()
    replica.freeze()
    await asyncio.sleep(0.5)
    assert not asked.complaint
    replica.thaw()
    await cancel(watching)
    await asked.close()


@pytest.mark.usefixtures("replica")
async def test_a_server_without_the_message_confirms_nothing(primary: ValkeyServer) -> None:
    """For example, one that took the place of the server that stored the message."""
    asked = Replicas(Reader(primary_at(primary.url)), RedisKeys("holdfast"), 1)
    answers: list[bool] = []
    await asked.open()
    asked.confirm(ids(1), answers.append)
    await until(lambda: len(answers) == 1)
    assert (answers, primary.ask("DBSIZE")) == ([False], 0)
    await asked.close()


@pytest.mark.usefixtures("replica")
async def test_an_answer_that_cannot_be_used_keeps_no_other_waiting(
    primary: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Replicas(Reader(primary_at(primary.url)), RedisKeys("holdfast"), 1)
    await asked.open()
    answers: list[bool] = []

    def fails(_: bool) -> None:
        raise ValueError("broken")

    asked.confirm((), fails)
    asked.confirm((), answers.append)
    await until(lambda: len(answers) == 1)
    asked.confirm((), answers.append)
    await until(lambda: len(answers) == 2)
    assert caplog.text.count("could not be used") == 1
    await asked.close()


@pytest.mark.usefixtures("replica")
async def test_a_primary_without_appendonly_causes_a_warning(
    primary: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    primary.set(appendonly="no")
    async with opened(primary, "replicas:1") as store:
        publisher = Publisher(store)
        publisher.keep(1)
        await publisher.gets(1, PersistOutcome.KEPT)
    assert "appendonly no" in caplog.text


def test_durability_by_replicas_requires_a_redis_setting() -> None:
    given: dict[str, Any] = {"durability": "replicas:1"}
    with pytest.raises(ValidationError, match="durability replicas:1 needs redis"):
        Settings(**given)


async def test_a_server_without_waitaof_is_refused_only_for_replicas(
    tmp_path: Path,
) -> None:
    """Servers before 7.2 do not have it."""
    (tmp_path / "old").write_text('rename-command WAITAOF ""\n')
    with ValkeyServer(include=str(tmp_path / "old")) as old:
        with pytest.raises(StoreUnavailable, match=r"replicas:1 needs WAITAOF.*7\.2"):
            async with opened(old, "replicas:1"):
                pass
        async with opened(old, "everysec") as store:
            assert store.is_available


# A server that others run


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
async def test_a_warning_says_what_a_server_with_weaker_settings_loses(
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


async def test_a_server_that_hides_its_settings_is_used_without_a_warning(
    valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    valkey.ask("ACL", "SETUSER", "default", "-config")
    async with opened(valkey, "always") as store:
        assert store.is_available
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
