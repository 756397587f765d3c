"""Readers of a history that are woken together answer one after the other."""

import asyncio
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.json_text import to_json
from holdfast.settings import ChannelSettings
from holdfast.web.streams.history_answers import Answer, Question, StreamsHere, data_in
from holdfast.web.streams.readers_here import ReadersHere
from tests.unit.bayeux.harness import server_of


async def test_a_reader_that_is_woken_reads_when_there_is_time_for_it() -> None:
    server = server_of(channels={"/a": ChannelSettings(history=5)})
    turns = asyncio.Semaphore(0)

    async def next_turn() -> None:
        await turns.acquire()

    streams = StreamsHere(server.bayeux, ReadersHere(server.bayeux, next_turn))
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

    streams = StreamsHere(server.bayeux, ReadersHere(server.bayeux, next_turn))
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


LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
TEXTS = st.text('a\\"}{,: \u00e9\U0001f600', max_size=5)
VALUES = st.recursive(
    LEAVES | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(VALUES, st.permutations(["channel", "data", "ext", "id"]), st.integers(0, 2), VALUES)
def test_the_data_of_an_event_is_found_wherever_it_is(
    data: Any, names: list[str], left_out: int, ext: Any
) -> None:
    event = {name: ext for name in names if name == "data" or names.index(name) >= left_out}
    event["data"] = data
    wire = to_json(event)
    assert orjson.loads(data_in(wire)) == orjson.loads(wire)["data"]
    # As another encoder writes it.
    indented = orjson.dumps(event, option=orjson.OPT_INDENT_2)
    assert orjson.loads(data_in(indented)) == orjson.loads(indented)["data"]


async def test_a_body_is_that_of_the_messages_that_are_asked_for() -> None:
    server = server_of(channels={"/**": ChannelSettings(history=5)})
    server.bayeux.state.epoch = "here"

    async def next_turn() -> None:
        pass

    streams = StreamsHere(server.bayeux, ReadersHere(server.bayeux, next_turn))

    async def body(channel: str, offset: str = "-1", *, has_envelope: bool = False) -> str:
        asked = Question(channel, offset, has_envelope=has_envelope)
        return (await streams.answer(asked)).body

    server.for_extensions.publish("/a", 1)
    server.for_extensions.publish("/b", 2)
    behind = (await streams.answer(Question("/a", "-1"))).end
    server.for_extensions.publish("/a", 3)
    for _ in range(2):
        assert await body("/a") == "[1,3]"
        assert await body("/a", behind) == "[3]"
        assert await body("/a", "now") == "[]"
        assert await body("/b") == "[2]"
        assert await body("/b", has_envelope=True) == '[{"channel":"/b","data":2}]'
