"""The store of a worker goes back to an earlier state while all workers run."""

import asyncio
import signal
from pathlib import Path

import pytest

from holdfast.store.home import Home
from tests.store.test_going_back import Past
from tests.web.sharding.fleet import Fleet, Visitor, fleet
from tests.web.sharding.test_failures import write

pytestmark = pytest.mark.slow


def past_of(workers: Fleet, shard: int) -> Past:
    """The present state of a worker's store."""
    place = workers.data / "shards" / str(shard) if shard else workers.data
    return Past(Home(place).url)


async def test_a_store_that_went_back_has_again_what_its_worker_took_from_others(
    tmp_path: Path,
) -> None:
    async with (
        fleet(tmp_path) as workers,
        Visitor(workers, 0) as writer,
        Visitor(workers, 1, "ann/1") as reader,
    ):
        assert (await reader.subscribe("/news"))["successful"]
        past = past_of(workers, 1)
        accepted = await write(writer, 0, 20)
        await asyncio.sleep(0.5)
        past.come_back()
        accepted |= await write(writer, 100, 20)
        await asyncio.sleep(1.5)
        await workers.end(1, signal.SIGKILL)
        await workers.start(1)
        await reader.hear(accepted)
        assert reader.heard == sorted(accepted), workers.log()
        assert len(accepted) == 40
        assert "the store has what the server knows again: wrote" in workers.log()


async def test_what_is_published_while_the_store_of_the_publisher_goes_back_comes_once(
    tmp_path: Path,
) -> None:
    async with (
        fleet(tmp_path) as workers,
        Visitor(workers, 0) as writer,
        Visitor(workers, 1, "ann/1") as reader,
    ):
        assert (await reader.subscribe("/news"))["successful"]
        past = past_of(workers, 0)
        accepted = await write(writer, 0, 20)
        await reader.hear(accepted)
        past.come_back()
        accepted |= await write(writer, 100, 20)
        await reader.hear(accepted)
        assert reader.heard == sorted(accepted), workers.log()
        # Some are refused while the store is told what it lost.
        assert len(accepted) > 25
        assert "the store has lost changes" in workers.log()


async def test_others_store_messages_for_subscribers_whom_a_store_that_went_back_did_not_have(
    tmp_path: Path,
) -> None:
    async with (
        fleet(tmp_path) as workers,
        Visitor(workers, 0) as witness,
        Visitor(workers, 1) as writer,
        Visitor(workers, 0, "joe/1") as reader,
    ):
        past = past_of(workers, 0)
        assert (await reader.subscribe("/news"))["successful"]
        past.come_back()
        # The worker notices it.
        await write(witness, 0, 1)
        await asyncio.sleep(1.5)
        accepted = await write(writer, 100, 20)
        await asyncio.sleep(0.5)
        await workers.end(0, signal.SIGKILL)
        await workers.start(0)
        await reader.hear(accepted)
        assert [each for each in reader.heard if each >= 100] == sorted(accepted), workers.log()
        assert len(accepted) == 20


async def test_a_repeat_is_one_for_all_workers_though_the_store_has_lost_the_first(
    tmp_path: Path,
) -> None:
    async with (
        fleet(tmp_path) as workers,
        Visitor(workers, 0) as writer,
        Visitor(workers, 1, "ann/1") as reader,
    ):
        assert (await reader.subscribe("/news"))["successful"]
        past = past_of(workers, 0)
        assert await writer.publish("/news", 1, key="a")
        await reader.hear({1})
        past.come_back()
        # While the store is told what it lost, publishes are refused.
        async with asyncio.timeout(20):
            while not await writer.publish("/news", 1, key="a"):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.05)
        assert await writer.publish("/news", 2)
        await reader.hear({1, 2})
        assert reader.heard == [1, 2], workers.log()


async def test_a_worker_that_had_not_read_what_the_store_of_another_one_lost_gets_it(
    tmp_path: Path,
) -> None:
    async with (
        fleet(tmp_path) as workers,
        Visitor(workers, 0) as writer,
        Visitor(workers, 1, "ann/1") as reader,
    ):
        assert (await reader.subscribe("/news"))["successful"]
        past = past_of(workers, 0)
        await workers.end(1, signal.SIGKILL)
        accepted = await write(writer, 0, 5)
        past.come_back()
        accepted |= await write(writer, 10, 5)
        await workers.start(1)
        accepted |= await write(writer, 100, 20)
        await reader.hear(accepted)
        assert {*range(5)} <= accepted
        assert reader.heard == sorted(accepted), workers.log()
