"""The lease is raised only where the store proves that no other server has opened it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bench.processes import reserved_port
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.reader import Reader
from holdfast.store.links.reply_errors import StoreRefused
from holdfast.store.opening import lease_keeper
from holdfast.store.opening.lease import SPEAK_S, Lease
from holdfast.store.opening.lease_keeper import LeaseKeeper
from holdfast.web.tasks import cancel
from tests.slowness import times_slower
from tests.store.caller import until
from tests.store.cluster import until as until_now
from tests.store.servers import ValkeyServer, primary_at

KEYS = RedisKeys("holdfast")
EPOCH = "7-1"


class FakeRight:
    """The right to write in this epoch."""

    def __init__(self) -> None:
        self.is_open = True
        self.epoch = EPOCH
        self.was_confirmed = False


class Holder:
    """A lease that is kept at a store. Its clock runs when the test says so."""

    def __init__(self, reader: Reader) -> None:
        self.now = 1000.0
        self.refusals: list[Exception] = []
        self.right = FakeRight()
        self.lease = Lease(lambda: self.now)
        self.keeper = LeaseKeeper(
            reader,
            KEYS,
            self.lease,
            self.right,
            on_refused=self.refusals.append,
        )

    def wait(self, seconds: float) -> bool:
        """Let time pass. Returns whether the holder may still speak."""
        for _ in range(int(seconds * 10)):
            self.now += 0.1
            self.lease.may_speak()
        return self.lease.may_speak()

    async def speaks(self) -> None:
        await until(self.lease.may_speak)


@asynccontextmanager
async def holding(reader: Reader) -> AsyncIterator[Holder]:
    holder = Holder(reader)
    task = asyncio.create_task(holder.keeper.run())
    try:
        yield holder
    finally:
        await cancel(task)
        reader.close()


@pytest.fixture
def store() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        server.ask("HSET", KEYS.meta, "epoch", EPOCH)
        yield server


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_keeper, "_EVERY_S", 0.02)
    monkeypatch.setattr(lease_keeper, "_PAUSE_S", 0.01)
    monkeypatch.setattr(lease_keeper, "_LIMIT_S", 0.3)
    monkeypatch.setattr(lease_keeper, "_REPLICA_MS", 100)


def reader(server: ValkeyServer) -> Reader:
    return Reader(primary_at(server.url))


def raised(server: ValkeyServer) -> int:
    return int(server.ask("HGET", KEYS.meta, "lease") or 0)


async def test_the_lease_is_raised_again_and_again(store: ValkeyServer) -> None:
    async with holding(reader(store)) as holder:
        await until(lambda: raised(store) > 3)
        assert holder.lease.may_speak()
        assert not holder.refusals


async def test_a_silence_ends_with_the_next_raise(
    store: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_keeper, "_EVERY_S", 100.0)
    async with holding(reader(store)) as holder:
        await holder.speaks()
        assert not holder.wait(SPEAK_S + 0.2)
        await holder.speaks()
        assert raised(store) == 2


async def test_a_holder_that_catches_up_raises_the_lease_with_pauses(
    store: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with holding(reader(store)) as holder:
        await holder.speaks()
        begun: list[object] = []
        holder.lease.catch_up = begun.append
        monkeypatch.setattr(lease_keeper, "_PAUSE_S", 100.0)
        assert not holder.wait(SPEAK_S + 0.2)
        await until(lambda: bool(begun))
        found = raised(store)
        await asyncio.sleep(0.1)
        assert raised(store) == found


async def test_a_store_that_freezes_silences_the_holder_until_it_answers_again(
    store: ValkeyServer,
) -> None:
    async with holding(reader(store)) as holder:
        await holder.speaks()
        store.freeze()
        assert not holder.wait(SPEAK_S + 0.2)
        await asyncio.sleep(0.5)
        assert not holder.lease.may_speak()
        store.thaw()
        await holder.speaks()
        assert not holder.refusals


async def test_another_epoch_is_reported_and_not_raised(store: ValkeyServer) -> None:
    async with holding(reader(store)) as holder:
        await holder.speaks()
        store.ask("HSET", KEYS.meta, "epoch", "7-2")
        await until(lambda: bool(holder.refusals))
        before = raised(store)
        await asyncio.sleep(0.1)
        assert raised(store) == before
        assert holder.refusals[0].args == ("EPOCH 7-2",)


async def test_a_store_that_was_emptied_is_reported(store: ValkeyServer) -> None:
    async with holding(reader(store)) as holder:
        await holder.speaks()
        store.ask("FLUSHALL")
        await until(lambda: bool(holder.refusals))
        assert holder.refusals[0].args == ("EPOCH gone",)
        assert not store.ask("EXISTS", KEYS.meta)


async def test_nothing_is_raised_while_the_store_is_not_open(store: ValkeyServer) -> None:
    async with holding(reader(store)) as holder:
        holder.right.is_open = False
        await asyncio.sleep(0.05)
        before = raised(store)
        await asyncio.sleep(0.1)
        assert raised(store) == before


async def test_a_primary_must_have_each_raise_confirmed_by_a_replica() -> None:
    with (
        reserved_port() as port,
        ValkeyServer(port=str(port), **{"repl-diskless-sync-delay": "0"}) as primary,
        ValkeyServer() as replica,
    ):
        primary.ask("HSET", KEYS.meta, "epoch", EPOCH)
        replica.follow(primary)
        async with holding(reader(primary)) as holder:
            await holder.speaks()
            # A primary that is cut off counts on its replica for a minute.
            replica.freeze()
            await asyncio.sleep(0.3 * times_slower(most=5.0))
            assert not holder.wait(SPEAK_S + 0.2)
            await asyncio.sleep(0.3)
            assert not holder.lease.may_speak()
            replica.thaw()
            await holder.speaks()
            # One that ends is removed at once, and nothing can take its place.
            replica.kill()
            assert not holder.wait(SPEAK_S + 0.2)
            await holder.speaks()


class Played(Reader):
    """A store that answers as a test says, and those who decide which server is the primary."""

    def __init__(self, **about: Any) -> None:
        # The epoch that it has, how many replicas it lists, and whether they answer.
        self.epoch: str = about.pop("epoch", EPOCH)
        self.replicas: int = about.pop("replicas", 1)
        self.answer: bool = about.pop("answer", True)
        # Why it changes nothing now.
        self.refusal: str = about.pop("refusal", "")
        # Whether most Sentinels name this server, if there are any.
        self.named: bool | None = about.pop("named", None)
        self.cluster: bool = about.pop("cluster", False)
        self.number = 0
        # What replicas must confirm is new since they answered last.
        self._is_changed = False
        assert not about

    is_connected = True

    @property
    def connection(self) -> object:
        return self.number

    @property
    def has_sentinels(self) -> bool:
        return self.named is not None

    @property
    def is_in_cluster(self) -> bool:
        return self.cluster

    async def is_named_by_sentinels(self, timeout_s: float) -> bool:
        return bool(self.named)

    async def attempt(self, *commands: Sequence[Any]) -> list[Any]:
        await asyncio.sleep(0)
        return [self._answer(*map(str, command)) for command in commands]

    def _answer(self, name: str, *_: str) -> Any:
        match name:
            case "EVAL" if self.refusal:
                return StoreRefused(self.refusal)
            case "EVAL" | "HGET":
                self._is_changed |= name == "EVAL"
                return self.epoch.encode()
            case "PUBLISH":
                self._is_changed |= not self.cluster
                return 0
            case "ROLE":
                return [b"master", 0, [b"replica"] * self.replicas]
            case "WAIT":
                confirmed = self.replicas * (self.answer or not self._is_changed)
                self._is_changed = False
                return confirmed
            case _:
                raise AssertionError(name)

    def close(self) -> None:
        pass


async def speaks(store: Played) -> bool:
    """Whether the holder of the lease speaks after some raises."""
    async with holding(store) as holder:
        for _ in range(30):
            await asyncio.sleep(0.01)
            if holder.lease.may_speak():
                return True
    return False


FULL = "MISCONF Errors writing to the AOF file: No space left on device"
TOO_FEW = "NOREPLICAS Not enough good replicas to write."


@pytest.mark.parametrize("refusal", ["", FULL])
@pytest.mark.parametrize("place", [{}, {"named": True}, {"cluster": True}])
async def test_a_raise_counts_that_a_replica_has_confirmed(
    refusal: str, place: dict[str, Any]
) -> None:
    assert await speaks(Played(refusal=refusal, **place))


@pytest.mark.parametrize("refusal", ["", FULL])
async def test_replicas_must_confirm_something_new(refusal: str) -> None:
    assert not await speaks(Played(refusal=refusal, answer=False))


@pytest.mark.parametrize("refusal", ["", FULL, TOO_FEW])
@pytest.mark.parametrize("replicas", [0, 1])
async def test_without_a_replica_that_answers_most_sentinels_must_name_the_primary(
    refusal: str, replicas: int
) -> None:
    about = {"refusal": refusal, "replicas": replicas, "answer": False}
    assert await speaks(Played(named=True, **about))
    assert not await speaks(Played(named=False, **about))


@pytest.mark.parametrize("refusal", ["", FULL, TOO_FEW])
@pytest.mark.parametrize("replicas", [0, 1])
async def test_a_node_of_a_cluster_is_not_believed_before_its_second_answer(
    refusal: str, replicas: int
) -> None:
    store = Played(cluster=True, refusal=refusal, replicas=replicas, answer=False)
    assert await speaks(store)
    attempt = store.attempt

    async def reconnected(*commands: Sequence[Any]) -> list[Any]:
        store.number += 1
        return await attempt(*commands)

    store.attempt = reconnected  # type: ignore[method-assign] # for this test
    assert not await speaks(store)


@pytest.mark.parametrize("place", [{"named": True}, {"cluster": True}, {}])
async def test_a_replica_that_ends_or_takes_over_leaves_no_silence(place: dict[str, Any]) -> None:
    store = Played(**place)
    async with holding(store) as holder:
        await holder.speaks()
        store.replicas, store.number = 0, 1
        assert not holder.wait(SPEAK_S + 0.2)
        await holder.speaks()


async def test_behind_neither_a_primary_counts_that_has_no_replicas() -> None:
    assert await speaks(Played(replicas=0))
    assert await speaks(Played(replicas=0, refusal=TOO_FEW))


async def test_a_store_that_cannot_write_reports_another_epoch() -> None:
    async with holding(Played(epoch="7-2", refusal=FULL)) as holder:
        await until(lambda: bool(holder.refusals))
        assert not holder.lease.may_speak()


async def test_a_primary_with_a_full_disk_must_have_a_replica_that_answers() -> None:
    with (
        reserved_port() as port,
        ValkeyServer(port=str(port), **{"repl-diskless-sync-delay": "0"}) as primary,
        ValkeyServer() as replica,
    ):
        primary.ask("HSET", KEYS.meta, "epoch", EPOCH)
        replica.follow(primary)
        fill_disk(primary)
        async with holding(reader(primary)) as holder:
            await holder.speaks()
            replica.freeze()
            await asyncio.sleep(0.3 * times_slower(most=5.0))
            assert not holder.wait(SPEAK_S + 0.2)
            await asyncio.sleep(0.3)
            assert not holder.lease.may_speak()
            replica.thaw()
            await holder.speaks()
        assert not raised(primary)


def fill_disk(server: ValkeyServer) -> None:
    """Let it refuse all writes: where its file should be is something else."""
    file = server.directory / "dump.rdb"
    file.unlink(missing_ok=True)
    file.mkdir()
    server.set(save="3600 1", stop_writes_on_bgsave_error="yes")
    server.ask("BGSAVE")
    until_now(lambda: server.ask("INFO", "persistence")["rdb_last_bgsave_status"] == "err")


async def test_a_user_who_may_not_ask_for_replicas_has_a_lease_without(store: ValkeyServer) -> None:
    rule = ("on", ">secret", "~*", "+@all", "-role")
    store.ask("ACL", "SETUSER", "plain", *rule)
    url = store.url.replace("unix://", "unix://plain:secret@")
    async with holding(Reader(primary_at(url))) as holder:
        await holder.speaks()
        assert raised(store)
