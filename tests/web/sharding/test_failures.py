"""Workers and their stores are killed, frozen and restarted: named sessions lose nothing."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.store.servers import ValkeyServer
from tests.web.sharding.fleet import Fleet, Visitor, fleet

pytestmark = pytest.mark.slow


async def write(writer: Visitor, first: int, count: int) -> set[int]:
    """Publish numbers; those that were accepted."""
    accepted = set()
    for number in range(first, first + count):
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


async def test_a_worker_that_is_restarted_brings_no_message_twice(tmp_path: Path) -> None:
    async with (
        fleet(tmp_path) as workers,
        Visitor(workers, 0) as writer,
        Visitor(workers, 1, "ann/1") as reader,
    ):
        assert (await reader.subscribe("/news"))["successful"]
        first = await write(writer, 0, 20)
        await reader.hear(first)
        await reader.listen(0)
        await workers.end(1, signal.SIGTERM)
        second = await write(writer, 100, 20)
        await workers.start(1)
        await reader.hear(first | second)
        assert reader.heard == sorted(first | second)
        assert len(first | second) == 40


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
        # Whatever was written a second ago is on the disk.
        await asyncio.sleep(1.5)
        accepted = await write(writer, 0, 20)
        await asyncio.sleep(1.5)
        workers.kill_store(killed)
        accepted |= await write(writer, 100, 200)
        await reader.hear(accepted)
        heard = firsts(reader.heard)
        assert accepted <= {*heard}, workers.log()
        assert [each for each in heard if each in accepted] == sorted(accepted)
        assert len(accepted) > 30


async def test_a_durable_subscribe_waits_for_a_worker_that_is_restarted(tmp_path: Path) -> None:
    async with fleet(tmp_path) as workers, Visitor(workers, 0, "joe/1") as reader:
        await reader.person()
        await workers.end(1, signal.SIGKILL)
        subscribing = asyncio.create_task(reader.subscribe("/news"))
        await asyncio.sleep(0.1)
        await workers.start(1)
        # A slow machine may need longer than the subscribe waits.
        answered = await subscribing
        assert answered["successful"] or answered["error"].startswith("503:resource.cluster")
        assert (await reader.subscribe("/news"))["successful"]


@pytest.mark.parametrize("has_own_store", [False, True])
async def test_a_worker_that_was_silent_for_long_knows_all_subscriptions_when_it_speaks(
    tmp_path: Path, has_own_store: bool
) -> None:
    with ValkeyServer(appendonly="yes") as valkey:
        async with (
            fleet(tmp_path, redis="" if has_own_store else valkey.url) as workers,
            Visitor(workers, 0, "joe/1") as reader,
            Visitor(workers, 1) as writer,
        ):
            await reader.person()
            await writer.person()
            workers.send(1, signal.SIGSTOP)
            # Its lease, or its counter, stands, so it is left out after some seconds.
            assert (await reader.subscribe("/news"))["successful"]
            publishing = asyncio.create_task(writer.publish("/news", 1))
            await asyncio.sleep(0.2)
            workers.send(1, signal.SIGCONT)
            assert await publishing
            # The publisher's worker has kept it for the subscriber, which was away.
            await workers.end(0, signal.SIGKILL)
            await workers.start(0)
            await reader.hear({1})
            assert {*reader.heard} == {1}, workers.log()


async def test_workers_with_stores_on_one_server_exchange_messages(tmp_path: Path) -> None:
    with ValkeyServer(appendonly="yes") as valkey:
        async with fleet(tmp_path, 3, valkey.url) as workers:
            await _exchange(workers)


async def test_three_workers_exchange_messages(tmp_path: Path) -> None:
    async with fleet(tmp_path, 3) as workers:
        await _exchange(workers)


async def _exchange(workers: Fleet) -> None:
    # Each has another home.
    people = [
        Visitor(workers, shard, f"{name}/1") for shard, name in enumerate(("eve", "joe", "ann"))
    ]
    for person in people:
        assert (await person.subscribe("/news"))["successful"]
    for number in range(30):
        assert await people[number % 3].publish("/news", number)
    await asyncio.gather(*(person.hear({*range(30)}) for person in people))
    for person in people:
        assert sorted(person.heard) == [*range(30)]
        for publisher in range(3):
            of = [each for each in person.heard if each % 3 == publisher]
            assert of == sorted(of)
        await person.__aexit__()
