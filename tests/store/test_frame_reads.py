"""The log of another shard is read again and again, over one connection."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.scripts import COUNT
from holdfast.store.framing import frame_reads
from holdfast.store.framing.frame_reads import Fields
from holdfast.store.framing.other_shard import OtherStore
from holdfast.store.framing.spacing import AT_ONCE, PAUSE_S
from holdfast.store.links.connection import StoreUnavailable
from tests.store.caller import until
from tests.store.servers import ValkeyServer, primary_at

pytestmark = pytest.mark.valkey

KEYS = RedisKeys("holdfast", 1)


class Follower:
    """Reads behind what it has heard, until it is told to stop."""

    def __init__(self, store: ValkeyServer) -> None:
        self.other = OtherStore(lambda: primary_at(store.url), KEYS)
        self.heard: list[str] = []
        self.is_stopped = False
        self.fault: Exception | None = None
        # When each read began.
        self.read_at: list[float] = []

    def next_read(self) -> tuple[str, int] | None:
        self.read_at.append(asyncio.get_running_loop().time())
        return None if self.is_stopped else (self._last, 20)

    def hear(self, after: str, frames: Sequence[tuple[bytes, Fields]]) -> None:
        assert after == self._last
        self.heard += [id.decode() for id, _ in frames]
        if self.fault is not None:
            raise self.fault

    @property
    def _last(self) -> str:
        return self.heard[-1] if self.heard else "0-0"

    async def hears(self, count: int) -> None:
        await until(lambda: len(self.heard) == count)

    async def reads(self, count: int) -> None:
        before = len(self.read_at)
        await until(lambda: len(self.read_at) >= before + count)


@asynccontextmanager
async def following(store: ValkeyServer) -> AsyncIterator[tuple[Follower, asyncio.Task[None]]]:
    follower = Follower(store)
    task = asyncio.create_task(follower.other.follow(follower.next_read, follower.hear))
    try:
        yield follower, task
    finally:
        follower.is_stopped = True
        await asyncio.wait([task])
        follower.other.close()


@pytest.fixture
def store() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


def append(store: ValkeyServer, *numbers: int) -> None:
    for number in numbers:
        store.ask("XADD", KEYS.log, f"1-{number}", "all", "frame")


async def test_frames_are_heard_once_and_in_order(store: ValkeyServer) -> None:
    append(store, 1, 2)
    async with following(store) as (follower, task):
        await until(lambda: follower.heard == ["1-1", "1-2"])
        await follower.reads(2)
        append(store, 3)
        await until(lambda: follower.heard[2:] == ["1-3"])
        append(store, 4, 5)
        await until(lambda: follower.heard[3:] == ["1-4", "1-5"])
        follower.is_stopped = True
        await task
        # The connection answers other questions now.
        assert await follower.other.holder() == ""


async def test_a_process_without_a_lease_is_seen_to_live_by_its_counter(
    store: ValkeyServer,
) -> None:
    other = Follower(store).other
    store.ask("HSET", KEYS.meta, "epoch", "7-1.aaaaaaaa")
    assert await other.holder() == "7-1.aaaaaaaa "
    store.ask("EVAL", COUNT.source, "1", KEYS.meta, "7-1.aaaaaaaa")
    assert await other.holder() == "7-1.aaaaaaaa 1"
    # Another process has opened the store.
    store.ask("EVAL", COUNT.source, "1", KEYS.meta, "6-1.aaaaaaaa")
    assert await other.holder() == "7-1.aaaaaaaa 1"
    other.close()


async def test_the_counter_takes_no_room_on_the_disk() -> None:
    with ValkeyServer(appendonly="yes") as store:
        store.ask("HSET", KEYS.meta, "epoch", "7-1.aaaaaaaa")
        size = aof_size(store)
        for _ in range(3):
            store.ask("EVAL", COUNT.source, "1", KEYS.meta, "7-1.aaaaaaaa")
        assert aof_size(store) == size
        assert store.ask("HGET", KEYS.meta, "lease") == b"3"


def aof_size(store: ValkeyServer) -> int:
    return int(store.ask("INFO", "persistence")["aof_current_size"])


async def test_a_reader_that_is_cancelled_when_its_connection_is_lost_leaves_no_fault(
    store: ValkeyServer,
) -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    async with following(store) as (follower, task):
        await follower.reads(2)
        follower.other.close()
        # It is told, and does not go on before it is cancelled.
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
    del task
    gc.collect()
    assert faults == []


async def test_many_reads_keep_a_distance(store: ValkeyServer) -> None:
    async with following(store) as (follower, _):
        for number in range(1, 2 * AT_ONCE):
            append(store, number)
            await follower.hears(number)
        reads = follower.read_at
        assert reads[AT_ONCE + 2] - reads[0] > 2 * PAUSE_S


async def test_a_log_with_much_is_read_without_pauses(store: ValkeyServer) -> None:
    append(store, *range(1, 16 * 50))
    async with following(store) as (follower, _):
        await until(lambda: len(follower.heard) == 16 * 50 - 1)
        soon = [after - before < PAUSE_S / 2 for before, after in pairwise(follower.read_at)]
        assert sum(soon) > 2 * AT_ONCE


async def test_a_fault_of_the_hearer_ends_the_reads(store: ValkeyServer) -> None:
    async with following(store) as (follower, task):
        await follower.reads(1)
        follower.fault = RuntimeError("it cannot hear")
        append(store, 1)
        with pytest.raises(RuntimeError, match="it cannot hear"):
            await task


async def test_a_store_that_ends_or_freezes_or_refuses_ends_the_reads(
    store: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ask("SET", KEYS.log, "no stream")
    async with following(store) as (_, task):
        with pytest.raises(StoreUnavailable, match="WRONGTYPE"):
            await task
    store.ask("DEL", KEYS.log)
    monkeypatch.setattr(frame_reads, "_SILENCE_S", 0.2)
    async with following(store) as (follower, task):
        await follower.reads(1)
        store.freeze()
        with pytest.raises(StoreUnavailable, match="the store cannot be read: it does not answer"):
            await task
        store.thaw()
    async with following(store) as (follower, task):
        await follower.reads(1)
        store.kill()
        with pytest.raises(StoreUnavailable, match="closed the connection"):
            await task
