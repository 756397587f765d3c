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


async def test_a_client_goes_on_at_another_worker_behind_its_cursor(both: Workers) -> None:
    writer, reader = both.person(0), both.person(0)
    await writer.handshake()
    await reader.handshake()
    await caught_up(reader, "/kept/*", True)
    for number in range(5):
        await publish(writer, f"/kept/{number % 2}", number)
    assert sorted(await heard(reader, 5)) == [*range(5)]
    cursor: Json = {}
    for _ in range(50):
        # The cursor follows when the workers have told each other how far they are.
        reply = (await reader.connect(100))[-1]
        last, cursor = cursor, reply["ext"]["replay"]
        if last == cursor:
            break
    for number in range(5, 8):
        await publish(writer, f"/kept/{number % 2}", number)
    again = both.person(1)
    await again.handshake()
    reply, came = await caught_up(again, "/kept/*", cursor)
    assert reply["ext"]["replay"]["recovered"]
    assert {5, 6, 7} <= {*came, *await heard(again, 0 if len(came) >= 3 else 3)}


async def test_what_has_not_changed_is_not_published_again_by_another_worker(both: Workers) -> None:
    writers = [both.person(0), both.person(1)]
    for each in writers:
        await each.handshake()
    await caught_up(writers[0], "/stored/a", 1)
    for number in (1, 2):
        for each in writers:
            await publish(each, "/stored/a", number, forceUpdate=False)
    assert await heard(writers[0], 2) == [1, 2]
    _, came = await caught_up(writers[1], "/stored/a")
    assert came + await heard(writers[1], 2 - len(came)) == [1, 2]


async def test_destinations_at_all_workers_get_what_any_worker_accepts(both: Workers) -> None:
    names = [both.subject_of(shard) for shard in (0, 1)]
    readers = [both.person(0), both.person(1)]
    for reader, name in zip(readers, names, strict=True):
        await reader.handshake(f"{name}/1")
    for door in (0, 1):
        writer = both.person(door)
        await writer.handshake()
        for channel in ("/kept/a", "/stored/a"):
            await publish(writer, channel, door, destinations=names)
            more = {"destinations": names, "subscribable": False, "forceUpdate": False}
            await publish(writer, channel, door, **more)
            await publish(writer, channel, "new", **more)
    for reader in readers:
        assert await heard(reader, 8) == [0, "new"] * 2 + [1, "new"] * 2


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
