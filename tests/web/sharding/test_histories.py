"""Histories that one worker keeps are read at any."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.forwarding.operators import operator
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person
from tests.web.sharding.test_crossing import heard, publish

pytestmark = pytest.mark.untraced

RULES = {"/kept/**": {"history": 100}, "/stored/**": {"history": 100, "durable": True}}


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers(tmp_path, chat=False, channels=RULES) as both:
        yield both


async def caught_up(person: Person, channel: str, replay: Any = -2) -> tuple[Json, list[Any]]:
    """The reply to a subscribe, and what comes with it."""
    replies = await person.ask("/meta/subscribe", subscription=channel, ext={"replay": replay})
    [reply] = [each for each in replies if "successful" in each]
    assert reply["successful"], reply
    return reply, [each["data"] for each in replies if "data" in each]


@pytest.mark.parametrize("channel", ["/kept/a", "/stored/a"])
@pytest.mark.parametrize("session", [None, "joe/1"])
async def test_a_history_is_read_at_any_worker(
    both: Workers, channel: str, session: str | None
) -> None:
    writer = both.person(0)
    await writer.handshake()
    for number in range(20):
        await publish(writer, channel, number)
    for door in (0, 1):
        reader = both.person(door)
        name = None if session is None else f"{both.subject_of(door)}/1"
        await reader.handshake(name)
        reply, came = await caught_up(reader, channel)
        assert reply["ext"]["replay"]["messages"] == 20 + door
        await publish(writer, channel, 20 + door)
        more = await heard(reader, 21 + door - len(came))
        assert came + more == [*range(21 + door)]


async def test_operators_see_histories_at_any_worker(both: Workers, tmp_path: Path) -> None:
    writer = both.person(0)
    await writer.handshake()
    async with operator(both, tmp_path) as ada:
        for number in range(3):
            await publish(writer, "/kept/a", number)
        every = await ada.get("/topic/history", channel="/kept/a")
        newest = await ada.get("/topic/history", channel="/kept/*", limit=2)
        none = await ada.get("/topic/history", channel="/kept/none")
    assert [each["data"] for each in every["items"]] == [2, 1, 0]
    assert [each["data"] for each in newest["items"]] == [2, 1]
    assert none == {"items": [], "unanswered": []}
