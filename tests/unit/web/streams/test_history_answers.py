"""Readers of a history that are woken together answer one after the other."""

import asyncio

from holdfast.settings import ChannelSettings
from holdfast.web.streams.history_answers import Answer, Question, StreamsHere
from tests.unit.bayeux.harness import server_of


async def test_a_reader_that_is_woken_reads_when_there_is_time_for_it() -> None:
    server = server_of(channels={"/a": ChannelSettings(history=5)})
    turns = asyncio.Semaphore(0)

    async def next_turn() -> None:
        await turns.acquire()

    streams = StreamsHere(server.bayeux, next_turn)
    asked = Question("/a", "now", wait_s=60.0)
    waiting = [asyncio.create_task(streams.answer(asked)) for _ in range(3)]

    async def answers() -> list[Answer]:
        for _ in range(10):
            await asyncio.sleep(0)
        return [each.result() for each in waiting if each.done()]

    assert await answers() == []
    server.for_extensions.publish("/a", 1)
    assert await answers() == []
    # What comes before their turn is in the same answer.
    server.for_extensions.publish("/a", 2)
    for count in (1, 2, 3):
        turns.release()
        found = await answers()
        assert [each.body for each in found] == ["[1,2]"] * count


async def test_not_all_readers_that_are_woken_run_before_others() -> None:
    server = server_of(channels={"/a": ChannelSettings(history=5)})
    ran = 0

    async def next_turn() -> None:
        nonlocal ran
        ran += 1

    streams = StreamsHere(server.bayeux, next_turn)
    asked = Question("/a", "now", wait_s=60.0)
    waiting = [asyncio.create_task(streams.answer(asked)) for _ in range(1000)]
    await asyncio.sleep(0)
    server.for_extensions.publish("/a", 1)
    steps = []
    while ran < len(waiting):
        before = ran
        await asyncio.sleep(0)
        steps.append(ran - before)
    assert max(steps) <= 100
    assert {each.body for each in await asyncio.gather(*waiting)} == {"[1]"}
    assert server.bayeux.state.histories._followers == {}
