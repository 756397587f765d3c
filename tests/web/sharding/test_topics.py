"""One worker decides about a topic, for the clients of all."""

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


async def ends(person: Person, channel: str) -> None:
    """Wait until there is no such topic."""

    async def is_over() -> bool:
        return not (await asked(person, state=channel)).get("state")

    await until(is_over)


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
        await ends(asker, channel)


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
        found: list[object] = []
        while None not in found:
            found += await heard(person, names[0])
        assert found[-1] is None
