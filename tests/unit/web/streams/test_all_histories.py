"""Readers of histories whose home is another shard."""

import asyncio
from dataclasses import asdict
from typing import Any, cast

import pytest

from holdfast.settings import ChannelSettings
from holdfast.web.joint import all_histories
from holdfast.web.joint.all_histories import JointStreams
from holdfast.web.joint.asking import Answer as Answered
from holdfast.web.streams.history_answers import Answer, Question
from tests.unit.bayeux.harness import Server, server_of

WAITING = Question("/a", "here_0000000000000001", wait_s=60.0)


class Home:
    """Another shard, which answers at once."""

    number = 0
    has_own = True

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked = 0

    def is_own(self, shard: int) -> bool:
        return shard == self.number

    async def ask(self, *_: Any) -> Answered:
        self.asked += 1
        return Answered(1, 200, asdict(self.answer))


def streams_with(server: Server, home: Home) -> JointStreams:
    async def next_turn() -> None:
        pass

    return JointStreams(cast("Any", home), "", server.bayeux, next_turn)


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def server() -> Server:
    return server_of(channels={"/a": ChannelSettings(history=5)})


async def test_a_reader_does_not_ask_a_home_that_leaves_again_at_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_histories, "_RETRY_S", 60.0)
    home = Home(Answer(end=str(WAITING.offset)))
    reading = asyncio.ensure_future(streams_with(server, home).asking.history(1, WAITING))
    await turns()
    assert not reading.done()
    # This process leaves, too.
    server.stop()
    assert (await reading).end == WAITING.offset
    assert home.asked == 1


@pytest.mark.parametrize("found", [Answer("[1]", 1), Answer(error="HISTORY_MISSING")])
async def test_a_reader_gets_what_its_home_says_at_once(server: Server, found: Answer) -> None:
    reading = asyncio.ensure_future(streams_with(server, Home(found)).asking.history(1, WAITING))
    await turns()
    assert reading.done()
    assert reading.result() == found
