"""One worker decides about a topic, for the clients of all."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.web.forwarding.operators import operator
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person, until
from tests.web.sharding.test_crossing import publish
from tests.web.sharding.test_presence import events

pytestmark = pytest.mark.untraced

RULES = {
    "/topics/**": {"topic": True, "destroy_delay": 300},
    "/kept/**": {"topic": True, "destroy_delay": -1, "history": 5},
}


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers(tmp_path, chat=False, channels=RULES) as both:
        yield both


async def people(both: Workers) -> tuple[Person, Person]:
    """A named session at each worker."""
    found = both.person(0), both.person(1)
    for shard, person in enumerate(found):
        assert (await person.handshake(f"{both.subject_of(shard)}/1"))["successful"]
    return found


async def heard(person: Person, channel: str) -> list[object]:
    """What comes on the channel first. Everything is acked."""
    found: list[object] = []

    async def has_come() -> bool:
        found.extend(await events(person, channel))
        return bool(found)

    await until(has_come)
    return found


async def asked(person: Person, **data: object) -> Json:
    """What `/service/topics` answers."""
    await person.ask("/service/topics", data=data)
    [answer] = await heard(person, "/service/topics")
    assert isinstance(answer, dict)
    return answer


async def comes_to(person: Person, channel: str, state: str) -> None:
    """Wait until the topic has this state; an empty one means that there is none."""

    async def is_there() -> bool:
        return str((await asked(person, state=channel)).get("state", "")) == state

    await until(is_there)


@pytest.mark.parametrize("channel", ["/topics/a", "/kept/a"])
async def test_a_topic_has_the_same_state_at_any_worker(both: Workers, channel: str) -> None:
    one, other = await people(both)
    for person in (one, other):
        await person.reply("/meta/subscribe", subscription=channel)
    assert (await asked(one, state=channel))["state"] == "UNCONFIGURED"
    await publish(one, channel, 1)
    for person in (one, other):

        async def counts_all(person: Person = person) -> bool:
            return bool((await asked(person, state=channel))["subscribers"] == 2)

        await until(counts_all)
        assert [each["channel"] for each in (await asked(person, list="/**"))["topics"]] == [
            channel
        ]


async def test_a_topic_ends_when_no_worker_refers_to_it(both: Workers) -> None:
    one, other = await people(both)
    for person in (one, other):
        await person.reply("/meta/subscribe", subscription="/topics/a")
    await publish(one, "/topics/a", 1)
    for person in (one, other):
        assert await heard(person, "/topics/a") == [1]
        await asyncio.sleep(0.5)
        assert (await asked(one, state="/topics/a"))["state"] == "ALIVE"
        await person.reply("/meta/unsubscribe", subscription="/topics/a")
    for person in (one, other):
        await comes_to(person, "/topics/a", "")


@pytest.mark.parametrize("channel", ["/topics/a", "/kept/a"])
@pytest.mark.parametrize("door", [0, 1])
async def test_any_worker_erases_a_topic_everywhere(both: Workers, channel: str, door: int) -> None:
    clients = await people(both)
    for person in clients:
        await person.reply("/meta/subscribe", subscription=channel)
    await publish(clients[0], channel, 1)
    for person in clients:
        assert await heard(person, channel) == [1]
    asker = both.person(door)
    await asker.handshake()
    assert await asked(asker, erase=channel) == {"erased": [channel], "next": None}
    for person in clients:
        assert await heard(person, channel) == [None]
        await comes_to(asker, channel, "")


async def test_operators_see_and_erase_topics_at_any_worker(both: Workers, tmp_path: Path) -> None:
    clients = await people(both)
    # No rule calls the last ones topics: publishes make them.
    names = ["/kept/a", "/topics/a", "/z1", "/z2"]
    for name in names:
        for person in clients:
            await person.reply("/meta/subscribe", subscription=name)
        await publish(clients[0], name, 1, topic={"destroyDelay": -1})
    async with operator(both, tmp_path) as ada:
        for name in names:

            async def counts_all(name: str = name) -> bool:
                return bool((await ada.get("/topic", channel=name))["subscribers"] == 2)

            await until(counts_all)
        page = await ada.get("/topics")
        assert [each["channel"] for each in page["items"]] == names
        for name in names:
            await ada.change("DELETE", "/topic", channel=name, force="true")
        assert (await ada.get("/topics"))["items"] == []
    for person in clients:
        assert (await heard(person, names[0]))[-1] is None


MADE = {"destroyDelay": -1, "history": {"maxEntries": 5}}


async def kept(person: Person, channel: str) -> list[object]:
    """What the channel keeps, the oldest first."""
    answer = await asked(person, get=channel, history={"numEntries": -1})
    return [each["data"] for each in reversed(answer["messages"])]


@pytest.mark.parametrize("channel", ["/made/a", "/b/made", "/c"])
@pytest.mark.parametrize("door", [0, 1])
async def test_a_publish_at_any_worker_makes_a_topic_for_all(
    both: Workers, channel: str, door: int
) -> None:
    clients = await people(both)
    maker, other = clients[door], clients[1 - door]
    await other.reply("/meta/subscribe", subscription=channel)
    await publish(maker, channel, 0)
    await publish(maker, channel, 1, topic=MADE)
    await publish(maker, channel, 2)
    await publish(other, channel, 3)
    found: list[object] = []
    while len(found) < 4:
        found += await heard(other, channel)
    assert found == [0, 1, 2, 3]
    for person in clients:
        assert await kept(person, channel) == [1, 2, 3]
        await comes_to(person, channel, "ALIVE")
    # A client of the other worker configures it.
    await publish(other, channel, None, administrative=True, topic={"readonly": True})
    for person in clients:
        reply = await person.reply(channel, data=4)
        assert reply["error"] == f"403:user.publish.readonly,{channel}:topic_readonly"
    assert await asked(maker, erase=channel) == {"erased": [channel], "next": None}
    assert await heard(other, channel) == [None]
