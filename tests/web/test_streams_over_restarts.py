"""Programs that read the history of a channel go on when one server follows another."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.unit.login.signing import token
from tests.web.people import Person, keys, until
from tests.web.played_supervisor import PlayedSupervisor
from tests.web.stream_reader import EventReader, Publisher, StreamReader
from tests.web.test_publish_requests import metric

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SETTINGS = {
    "channels": {"/kept/**": {"history": 1000, "durable": True}},
    "journal": False,
    # Nobody waits in vain for so long.
    "timeout": 300_000,
}
BUSY, QUIET = "/kept/busy", "/kept/quiet"
READERS = 3
RIGHTS = "[[rule]]\nwho = ['*']\nmay = ['all']\nchannels = ['/kept/**']\n"


@pytest.fixture
def played(tmp_path: Path) -> Iterator[PlayedSupervisor]:
    with PlayedSupervisor(tmp_path, SETTINGS) as played:
        yield played


@asynccontextmanager
async def reading(
    played: PlayedSupervisor, channel: str, offset: str = "-1"
) -> AsyncIterator[list[StreamReader]]:
    async with AsyncExitStack() as stack:
        readers = [StreamReader(lambda: played.url, channel, offset) for _ in range(READERS)]
        yield [await stack.enter_async_context(each) for each in readers]


async def readers_wait(played: PlayedSupervisor, count: int) -> None:
    person = Person(played.url)

    async def they_do() -> bool:
        return await metric(person, "holdfast_stream_readers") == count

    async with person.http:
        await until(they_do)


async def test_readers_do_not_notice_a_restart(played: PlayedSupervisor) -> None:
    async with (
        reading(played, BUSY) as busy,
        reading(played, QUIET, "now") as quiet,
        Publisher(lambda: played.url, BUSY) as publisher,
    ):
        for count in (1, 2):
            await publisher.publish(20)
            await readers_wait(played, 2 * READERS)
            publishing = asyncio.create_task(publisher.publish(40))
            await asyncio.to_thread(played.restart)
            await publishing
            await readers_wait(played, 2 * READERS)
            for each in quiet:
                assert {*each.statuses} == {204}
                assert each.statuses[204] >= count
        for each in busy:
            await each.hear(publisher.accepted[-1])
            each.check_heard(publisher.accepted)
            assert {*each.statuses} <= {200, 204}
        assert [each.broken for each in busy + quiet] == [[]] * 2 * READERS


async def test_readers_miss_nothing_when_the_server_is_killed(played: PlayedSupervisor) -> None:
    async with reading(played, BUSY) as readers, Publisher(lambda: played.url, BUSY) as publisher:
        for _ in range(2):
            await publisher.publish(20)
            publishing = asyncio.create_task(publisher.publish(40))
            await asyncio.to_thread(played.server.kill)
            await asyncio.to_thread(played.start)
            await publishing
        for each in readers:
            await each.hear(publisher.accepted[-1])
            each.check_heard(publisher.accepted)
            assert {*each.statuses} <= {200, 204, 503}


async def test_pages_go_on_after_restarts_and_kills(played: PlayedSupervisor) -> None:
    def page(*channels: str) -> EventReader:
        return EventReader(lambda: played.url, *channels)

    async with (
        page("/kept/*") as all_of,
        page(QUIET, BUSY, "/none") as named,
        Publisher(lambda: played.url, BUSY) as publisher,
    ):
        for is_kill in (False, True, False):
            await publisher.publish(20)
            publishing = asyncio.create_task(publisher.publish(40))
            if is_kill:
                await asyncio.to_thread(played.server.kill)
                await asyncio.to_thread(played.start)
            else:
                await asyncio.to_thread(played.restart)
            await publishing
        for each in (all_of, named):
            await each.hear(publisher.accepted[-1])
            each.check_heard(publisher.accepted)
            assert {*each.statuses} == {200}
        # Nothing is lost, also of channels that had no messages.
        assert all_of.notices == []
        assert {(name, said["channel"]) for name, said in named.notices} == {("missing", "/none")}


async def test_tickets_are_good_at_the_next_server(tmp_path: Path) -> None:
    (tmp_path / "rights.toml").write_text(RIGHTS)
    settings = {**SETTINGS, **keys(tmp_path), "rights": str(tmp_path / "rights.toml")}
    login = {"Authorization": f"Bearer {token()}"}
    with PlayedSupervisor(tmp_path, settings) as played:
        person = Person(played.url)
        person.http.headers.update(login)
        async with (
            person.http,
            person.http.post("/streams/tickets", params={"channel": "/kept/*"}) as response,
        ):
            ticket = (await response.json(content_type=None))["ticket"]
        async with (
            EventReader(lambda: played.url, BUSY, ticket=ticket) as page,
            Publisher(lambda: played.url, BUSY, **login) as publisher,
        ):
            for is_kill in (False, True):
                await publisher.publish(10)
                publishing = asyncio.create_task(publisher.publish(20))
                if is_kill:
                    await asyncio.to_thread(played.server.kill)
                    await asyncio.to_thread(played.start)
                else:
                    await asyncio.to_thread(played.restart)
                await publishing
            await page.hear_of(publisher)
            assert ({*page.statuses}, page.notices) == ({200}, [])
