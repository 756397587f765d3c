"""Programs read the history of a channel at any shard, while its home or its store is killed."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from secrets import token_bytes
from typing import Any

import aiohttp
import pytest

from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.cluster.shards import first_map
from tests.web.people import Person, until
from tests.web.sharding.fleet import Fleet, fleet
from tests.web.stream_reader import EventReader, Publisher, StreamReader
from tests.web.test_publish_requests import metric
from tests.web.test_streams import Read, error_of, read, tell

pytestmark = pytest.mark.slow

SHARDS = 3
# The headers that say where a reader is.
SAID = ("Stream-Next-Offset", "Stream-Up-To-Date", "ETag", "Cache-Control", "Content-Type")


KEPT, ALSO, BRIEF = "/kept/a", "/also/a", "/brief"


def home_of(first: str) -> int:
    """The shard that has the channels below this one. The workers of a fleet know their key."""
    bucket_of = ClientIds(bytes(32), token_bytes).bucket_of
    return first_map(SHARDS).of_bucket[bucket_of(f"channel {first}")]


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[list[Person]]:
    """A client of each shard."""
    async with fleet(tmp_path, SHARDS) as workers, AsyncExitStack() as stack:
        found = [Person(workers.urls[shard]) for shard in range(SHARDS)]
        for each in found:
            stack.push_async_callback(each.http.close)
        yield found


async def read_at_all(people: list[Person], *args: Any, **asked: Any) -> Read:
    """Read the same at each shard. All answers must be equal."""
    found = [await _read_patiently(each, *args, **asked) for each in people]
    for each in found:
        assert (each.status, each.data) == (found[0].status, found[0].data)
        assert [each.headers.get(name) for name in SAID] == [
            found[0].headers.get(name) for name in SAID
        ]
    return found[0]


async def test_all_shards_give_the_same_answers(people: list[Person]) -> None:
    channel = KEPT
    first = await read_at_all(people, channel)
    await tell(people[0], *range(5), channel=channel)
    caught_up = await read_at_all(people, channel, offset=first.next)
    assert caught_up.data == [*range(5)]
    assert (await read_at_all(people, channel, envelope="1")).data[4]["data"] == 4
    for end in (
        await read_at_all(people, channel, "HEAD"),
        await read_at_all(people, channel, offset="now"),
    ):
        assert end.next == caught_up.next
    unchanged = {"If-None-Match": (await read(people[0], channel)).headers["ETag"]}
    assert (await read_at_all(people, channel, headers=unchanged)).status == 304

    waiting = _wait_at_all(people, channel, caught_up.next)
    await _readers_are(people[0], SHARDS)
    await tell(people[0], "came", channel=channel)
    for each in waiting:
        assert (await each).data == ["came"]
    await _readers_are(people[0], 0)

    seen = await read_at_all(people, BRIEF)
    await tell(people[0], 1, 2, 3, channel=BRIEF)
    lost = await read_at_all(people, BRIEF, offset=seen.next)
    assert (lost.status, error_of(lost)) == (410, "410::history_lost")
    assert (await read_at_all(people, BRIEF, offset=lost.next)).data == [2, 3]
    for same in ("/brief/", "/brief%20"):
        assert (await read_at_all(people, same)).data == [2, 3]
    for wrong, error in {
        "0123456789abcdef_1763865600000123": "410::history_lost",
        "x": "400::offset_invalid",
        caught_up.next[:-16] + "9" * 17: "400::offset_invalid",
    }.items():
        assert error_of(await read_at_all(people, channel, offset=wrong)) == error
    nothing = await read_at_all(people, "/none")
    assert (nothing.status, error_of(nothing)) == (404, "404::history_missing")


async def _read_patiently(person: Person, *args: Any, **asked: Any) -> Read:
    """Read from a home that may not answer in time on a slow machine."""
    while True:
        found = await read(person, *args, **asked)
        if found.status != 503:
            return found
        await asyncio.sleep(0.05)


def _wait_at_all(people: list[Person], channel: str, offset: str) -> list[asyncio.Task[Read]]:
    return [
        asyncio.create_task(read(each, channel, offset=offset, live="long-poll")) for each in people
    ]


async def _readers_are(person: Person, count: int) -> None:
    async def is_so() -> bool:
        return await metric(person, "holdfast_stream_readers") == count

    await until(is_so)


@pytest.mark.timeout(300)
async def test_readers_at_all_shards_miss_nothing_when_the_home_is_killed(tmp_path: Path) -> None:
    home, channel = home_of("/kept"), KEPT
    async with fleet(tmp_path, SHARDS) as workers, AsyncExitStack() as stack:
        readers = [
            await stack.enter_async_context(StreamReader(partial(_url, workers, shard), channel))
            for shard in range(SHARDS)
        ]
        door = next(shard for shard in range(SHARDS) if shard != home)
        publisher = await stack.enter_async_context(Publisher(lambda: workers.urls[door], channel))
        for _ in range(2):
            await publisher.publish(30)
            publishing = asyncio.create_task(publisher.publish(30))
            await workers.end(home, signal.SIGKILL)
            await workers.start(home)
            await publishing
        await publisher.publish(30)
        for each in readers:
            await each.hear(publisher.accepted[-1])
            each.check_heard(publisher.accepted)
            assert {*each.statuses} <= {200, 204, 503}
        for shard in {*range(SHARDS)} - {home}:
            assert readers[shard].broken == []


@pytest.mark.timeout(300)
async def test_readers_at_all_shards_miss_nothing_when_the_store_of_the_home_is_killed(
    tmp_path: Path,
) -> None:
    home = home_of("/kept")
    async with fleet(tmp_path, SHARDS) as workers, AsyncExitStack() as stack:
        readers = [
            await stack.enter_async_context(StreamReader(partial(_url, workers, shard), KEPT))
            for shard in range(SHARDS)
        ]
        publisher = await stack.enter_async_context(Publisher(lambda: workers.urls[home], KEPT))
        await publisher.publish(20)
        await asyncio.to_thread(workers.wait_for_disks)
        publishing = asyncio.create_task(publisher.publish(60))
        workers.kill_store(home)
        await publishing
        for each in readers:
            await each.hear(publisher.accepted[-1])
            each.check_heard(publisher.accepted)
            assert {*each.statuses} <= {200, 204, 503}
            assert each.broken == []


async def test_a_page_does_not_pass_over_a_message_that_waits_for_another_shard(
    tmp_path: Path,
) -> None:
    # The shards of subjects are as many as those of channels.
    home = home_of("/kept")
    async with fleet(tmp_path, SHARDS) as workers, AsyncExitStack() as stack:
        bob = await stack.enter_async_context(Person(workers.urls[home]).http)
        page = EventReader(lambda: workers.urls[home], "/kept/*")
        names = [f"subject{number}" for number in range(12)]
        for other in {*range(SHARDS)} - {home}:
            workers.send(other, signal.SIGSTOP)
        await stack.enter_async_context(page)
        addressed = [
            {
                "channel": f"/kept/{name}",
                "data": name,
                "ext": {"delivery": {"destinations": [{"name": name, "forceQueuing": True}]}},
            }
            for name in names
        ]
        waits = asyncio.create_task(_publish(bob, addressed))
        await asyncio.sleep(0.5)
        assert await _publish(bob, [{"channel": "/kept/plain", "data": "plain"}]) == [True]
        await asyncio.sleep(0.5)
        for other in {*range(SHARDS)} - {home}:
            workers.send(other, signal.SIGCONT)
        accepted = await waits
        assert any(accepted)
        last = {"channel": "/kept/last", "data": "last"}
        assert await _publish(bob, [last]) == [True]
        await page.hear("last")
        sent = [name for name, is_accepted in zip(names, accepted, strict=True) if is_accepted]
        assert {*sent, "plain"} <= {*page.heard}


async def _publish(http: aiohttp.ClientSession, messages: list[Any]) -> list[bool]:
    async with http.post("/publish", json=messages) as response:
        return [each["successful"] for each in await response.json(content_type=None)]


def _url(workers: Fleet, shard: int) -> str:
    return workers.urls[shard]


@pytest.mark.timeout(300)
async def test_pages_at_all_shards_miss_nothing_when_any_of_them_is_killed(tmp_path: Path) -> None:
    channels = (KEPT, ALSO)
    assert home_of("/kept") != home_of("/also")
    async with fleet(tmp_path, SHARDS) as workers, AsyncExitStack() as stack:
        pages = [
            await stack.enter_async_context(EventReader(partial(_url, workers, shard), *asked))
            for shard in range(SHARDS)
            for asked in (channels, ["/kept/**", "/also/*", "/none"])
        ]
        publishers = [
            await stack.enter_async_context(Publisher(lambda: workers.urls[2], each))
            for each in channels
        ]
        for shard in range(SHARDS):
            await asyncio.gather(*[each.publish(20) for each in publishers])
            publishing = asyncio.gather(*[each.publish(30) for each in publishers])
            await workers.end(shard, signal.SIGKILL)
            await workers.start(shard)
            await publishing
        await asyncio.gather(*[each.publish(5) for each in publishers])
        for page in pages:
            assert {*page.statuses} == {200}
            for publisher in publishers:
                await page.hear_of(publisher)
            # Nothing is lost, also of channels that had no messages.
            assert {name for name, _ in page.notices} <= {"missing", "unavailable"}


async def test_a_page_goes_on_at_all_shards_where_it_was_at_a_server_alone(tmp_path: Path) -> None:
    async with fleet(tmp_path, SHARDS) as workers, AsyncExitStack() as stack:
        publishers = [
            await stack.enter_async_context(Publisher(lambda: workers.urls[0], each))
            for each in (KEPT, ALSO)
        ]
        bob = Person(workers.urls[0])
        stack.push_async_callback(bob.http.close)
        for each in publishers:
            await each.publish(2)
        seen = (await _read_patiently(bob, publishers[-1].channel)).next
        page = EventReader(lambda: workers.urls[0], KEPT, ALSO, after=f"0-{seen}")
        await stack.enter_async_context(page)
        for each in publishers:
            await each.publish(1)
        for each in publishers:
            await page.hear_of_last(each)
        assert page.of_channel == {each.channel: [each.accepted[-1]] for each in publishers}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("frozen_s", [1.5, 5.0])
async def test_pages_go_on_when_a_home_or_their_own_shard_was_frozen(
    tmp_path: Path, frozen_s: float
) -> None:
    """A shorter time than others wait for an answer, and one after which they give up."""
    async with fleet(tmp_path, SHARDS) as workers, AsyncExitStack() as stack:
        pages = [
            await stack.enter_async_context(EventReader(partial(_url, workers, shard), *asked))
            for shard in range(SHARDS)
            for asked in ((KEPT, ALSO), ["/kept/**", "/also/*", "/none"])
        ]
        publishers = [
            await stack.enter_async_context(Publisher(partial(_url, workers, shard), channel))
            for shard, channel in enumerate((KEPT, ALSO))
        ]
        for shard in range(SHARDS):
            await asyncio.gather(*[each.publish(10) for each in publishers])
            publishing = asyncio.gather(*[each.publish(30) for each in publishers])
            workers.send(shard, signal.SIGSTOP)
            await asyncio.sleep(frozen_s)
            workers.send(shard, signal.SIGCONT)
            await publishing
        await asyncio.gather(*[each.publish(5) for each in publishers])
        for page in pages:
            for publisher in publishers:
                await page.hear_of(publisher)
            assert {*page.statuses} == {200}
            assert {name for name, _ in page.notices} <= {"missing", "unavailable"}
            page.check_ids()


async def test_a_page_hears_of_other_homes_while_one_is_frozen(tmp_path: Path) -> None:
    home, frozen = home_of("/kept"), home_of("/also")
    async with fleet(tmp_path, SHARDS) as workers, AsyncExitStack() as stack:
        doors = {*range(SHARDS)} - {frozen}
        pages = [
            await stack.enter_async_context(EventReader(partial(_url, workers, door), KEPT, ALSO))
            for door in doors
        ]
        publisher = await stack.enter_async_context(Publisher(lambda: workers.urls[home], KEPT))
        await publisher.publish(1)
        for each in pages:
            await each.hear_of(publisher)
        workers.send(frozen, signal.SIGSTOP)
        for _ in range(3):
            # Longer than others wait for an answer.
            await asyncio.sleep(1.5)
            await publisher.publish(2)
            for each in pages:
                await each.hear_of(publisher)
        workers.send(frozen, signal.SIGCONT)
        for each in pages:
            assert (each.statuses, each.broken, each.notices) == ({200: 1}, [], [])
