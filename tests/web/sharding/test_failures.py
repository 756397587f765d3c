"""Workers and their stores are killed: named sessions lose nothing."""

import asyncio
import signal
from itertools import count
from pathlib import Path

import pytest

from tests.web.sharding.fleet import Visitor, fleet

pytestmark = pytest.mark.slow

LIMIT_S = 60.0


async def write(writer: Visitor, first: int, many: int) -> set[int]:
    """Publish numbers; those that were accepted."""
    accepted = set()
    for number in range(first, first + many):
        if await writer.publish("/news", number):
            accepted.add(number)
        await asyncio.sleep(0.005)
    return accepted


def firsts(heard: list[int]) -> list[int]:
    """Each number when it came first: after a kill, messages may come again."""
    return [*dict.fromkeys(heard)]


@pytest.mark.parametrize("killed", [0, 1])
async def test_a_worker_that_is_killed_loses_nothing_that_was_accepted(
    tmp_path: Path, killed: int
) -> None:
    async with (
        fleet(tmp_path) as workers,
        Visitor(workers, 0) as writer,
        Visitor(workers, 1, "ann/1") as reader,
    ):
        assert (await reader.subscribe("/news"))["successful"]
        accepted: set[int] = set()
        for round in range(3):
            writing = asyncio.create_task(write(writer, 100 * round, 60))
            await asyncio.sleep(0.1)
            await workers.end(killed, signal.SIGKILL)
            await workers.start(killed)
            accepted |= await writing
            accepted |= await write(writer, 100 * round + 60, 20)
        accepted |= await write(writer, 1000, 20)
        await reader.hear(accepted)
        heard = firsts(reader.heard)
        assert accepted <= {*heard}, workers.log()
        assert [each for each in heard if each in accepted] == sorted(accepted)
        assert len(accepted) > 50


@pytest.mark.parametrize("killed", [0, 1])
async def test_a_store_that_is_killed_loses_nothing_that_was_accepted(
    tmp_path: Path, killed: int
) -> None:
    async with (
        fleet(tmp_path) as workers,
        Visitor(workers, 0) as writer,
        Visitor(workers, 1, "ann/1") as reader,
    ):
        assert (await reader.subscribe("/news"))["successful"]
        await asyncio.to_thread(workers.wait_for_disks)
        accepted = await write(writer, 0, 20)
        await asyncio.to_thread(workers.wait_for_disks)
        workers.kill_store(killed)
        accepted |= await write(writer, 100, 200)
        async with asyncio.timeout(LIMIT_S):
            # Until the store is there again, some are refused.
            for first in count(300, 20):
                if len(accepted) > 30:
                    break
                accepted |= await write(writer, first, 20)
        await reader.hear(accepted)
        heard = firsts(reader.heard)
        assert accepted <= {*heard}, workers.log()
        assert [each for each in heard if each in accepted] == sorted(accepted)
