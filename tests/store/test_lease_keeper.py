"""The lease is raised only where the store proves that no other server has opened it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bench.processes import reserved_port
from holdfast.store import lease_keeper
from holdfast.store.connection import StoreUnavailable
from holdfast.store.keys import RedisKeys
from holdfast.store.lease import SPEAK_S, Lease
from holdfast.store.lease_keeper import LeaseKeeper
from holdfast.store.reader import Reader
from holdfast.web.tasks import cancel
from tests.store.caller import until
from tests.store.servers import ValkeyServer, primary_at

KEYS = RedisKeys("holdfast")
EPOCH = "7-1"


class FakeRight:
    """The right to write in this epoch."""

    def __init__(self) -> None:
        self.is_open = True
        self.epoch = EPOCH


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
            await asyncio.sleep(0.3)
            assert not holder.wait(SPEAK_S + 0.2)
            await asyncio.sleep(0.3)
            assert not holder.lease.may_speak()
            replica.thaw()
            await holder.speaks()
            # One that ends is removed at once, and nothing can take its place.
            replica.kill()
            assert not holder.wait(SPEAK_S + 0.2)
            await holder.speaks()


class Failover(Reader):
    """A store with a replica, until the connection is lost. The next one has none."""

    def __init__(self) -> None:
        self.connections = 0
        self._has_replica = True
        self.heard: list[str] = []

    @property
    def is_connected(self) -> bool:
        return bool(self.connections)

    def fail_over(self) -> None:
        self.connections, self._has_replica = 0, False
        self.heard.clear()

    async def ask_all(self, *commands: Sequence[Any]) -> list[Any]:
        await asyncio.sleep(0)
        self.connections = 1
        self.heard += [str(command[0]) for command in commands]
        answers = {"EVAL": EPOCH.encode(), "ROLE": [b"master", 0, [1] * self._has_replica]}
        return [answers.get(str(command[0]), 1) for command in commands]

    def close(self) -> None:
        pass


async def test_the_first_raise_after_a_failover_waits_for_no_replica() -> None:
    store = Failover()
    async with holding(store) as holder:
        await holder.speaks()
        await until(lambda: store.heard.count("WAIT") > 1)
        store.fail_over()
        await until(lambda: len(store.heard) > 2)
        assert "WAIT" not in store.heard


class FullDisk(Reader):
    """A store that cannot write, which another server may have opened before."""

    def __init__(self, epoch: bytes) -> None:
        self._epoch = epoch

    is_connected = True

    async def ask_all(self, *commands: Sequence[Any]) -> list[Any]:
        if commands[0][0] == "HGET":
            return [self._epoch]
        raise StoreUnavailable("the store cannot be read: MISCONF Errors writing to the AOF file")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("epoch", [EPOCH, "7-2"])
async def test_a_store_that_cannot_write_confirms_the_epoch_that_it_has(epoch: str) -> None:
    async with holding(FullDisk(epoch.encode())) as holder:
        if epoch == EPOCH:
            await holder.speaks()
        else:
            await until(lambda: bool(holder.refusals))
            assert not holder.lease.may_speak()


async def test_a_user_who_may_not_ask_for_replicas_has_a_lease_without(store: ValkeyServer) -> None:
    rule = ("on", ">secret", "~*", "+@all", "-role")
    store.ask("ACL", "SETUSER", "plain", *rule)
    url = store.url.replace("unix://", "unix://plain:secret@")
    async with holding(Reader(primary_at(url))) as holder:
        await holder.speaks()
        assert raised(store)
