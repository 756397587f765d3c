"""Connections that one process gives to another outlive it, and a kill breaks no others."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import aiohttp
import pytest

from tests.web.people import Person, until
from tests.web.sharding.fleet import Fleet, fleet

pytestmark = pytest.mark.slow


class Crowd:
    """Clients of the second worker whose connections begin at the first."""

    def __init__(self, workers: Fleet, stack: AsyncExitStack) -> None:
        self.workers, self._stack = workers, stack
        self.ada = self._person(1)

    def _person(self, shard: int) -> Person:
        person = Person(self.workers.urls[shard])
        self._stack.push_async_callback(person.http.close)
        return person

    async def enter(self) -> None:
        assert (await self.ada.handshake("ada/1"))["successful"]

    def newcomer(self) -> Person:
        """The same client with a new connection."""
        other = self._person(0)
        other.http.cookie_jar.update_cookies(
            {each.key: each.value for each in self.ada.http.cookie_jar}
        )
        other.client_id = self.ada.client_id
        return other

    async def given(self) -> float:
        """How many connections the first worker has given to the second."""
        url = f"{self.workers.urls[0]}/metrics"
        async with aiohttp.ClientSession() as http, http.get(url) as response:
            name = 'holdfast_connections_given_total{shard="0",to="1"} '
            lines = (await response.text()).splitlines()
        return float(next(each for each in lines if each.startswith(name)).removeprefix(name))

    def descriptors(self, shard: int) -> list[str]:
        """What a worker has open."""
        found = []
        for each in Path(f"/proc/{self.workers._processes[shard].pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.append(str(each.readlink()))
        return found


@pytest.fixture
async def crowd(tmp_path: Path) -> AsyncIterator[Crowd]:
    async with fleet(tmp_path) as workers, AsyncExitStack() as stack:
        crowd = Crowd(workers, stack)
        await crowd.enter()
        # Until the first worker reaches the second, everything is forwarded.
        await until(lambda: _has_given(crowd))
        yield crowd


async def _has_given(crowd: Crowd) -> bool:
    return await publish(crowd.newcomer(), 0) and await crowd.given() > 0


async def publish(person: Person, data: int) -> bool:
    return bool((await person.reply("/news", data=data))["successful"])


async def test_a_given_connection_outlives_the_door(crowd: Crowd) -> None:
    other = crowd.newcomer()
    before = await crowd.given()
    assert await publish(other, 1)

    async def is_given() -> bool:
        # The first worker hears of it when the client may be answered already.
        return await crowd.given() > before

    await until(is_given)
    [connection] = _connections(other)
    await crowd.workers.end(0, signal.SIGKILL)
    assert await publish(other, 2)
    assert _connections(other) == [connection]


def _connections(person: Person) -> list[object]:
    """The open connections of a client."""
    pools = person.http.connector._conns.values()  # type: ignore[union-attr]
    return [protocol for pool in pools for protocol, _ in pool]


async def test_a_frozen_worker_goes_on_with_what_it_was_given(crowd: Crowd) -> None:
    crowd.workers.send(1, signal.SIGSTOP)
    asking = [asyncio.create_task(publish(crowd.newcomer(), 1)) for _ in range(5)]
    await asyncio.sleep(0.3)
    assert not any(each.done() for each in asking)
    crowd.workers.send(1, signal.SIGCONT)
    assert await asyncio.gather(*asking) == [True] * 5


async def test_what_a_killed_worker_has_not_touched_stays_at_the_door(crowd: Crowd) -> None:
    crowd.workers.send(1, signal.SIGSTOP)
    people = [crowd.newcomer() for _ in range(5)]
    asking = [asyncio.create_task(publish(each, 1)) for each in people]
    await asyncio.sleep(0.3)
    await crowd.workers.end(1, signal.SIGKILL)
    await crowd.workers.start(1)
    # The start may take longer than requests wait: then it is 503, on a connection that goes on.
    for outcome in await asyncio.gather(*asking, return_exceptions=True):
        assert outcome is True or isinstance(outcome, AssertionError)
    kept = [_connections(each) for each in people]
    await until(lambda: _is_served(people[0]))
    assert [await publish(each, 3) for each in people] == [True] * 5
    assert [_connections(each) for each in people] == kept


async def _is_served(person: Person) -> bool:
    with suppress(AssertionError):
        return await publish(person, 2)
    return False


@pytest.mark.parametrize("killed", [0, 1])
async def test_a_kill_at_any_moment_ends_no_other_connection(crowd: Crowd, killed: int) -> None:
    """Connections come all the time; only those of the killed worker break."""
    stays = crowd.ada if killed == 0 else crowd._person(0)
    if killed:
        assert (await stays.handshake())["successful"]
    is_over = False
    accepted = 0

    async def come(pause_s: float) -> None:
        nonlocal accepted
        while not is_over:
            with suppress(aiohttp.ClientError, AssertionError, ConnectionError):
                person = crowd.newcomer()
                accepted += await publish(person, 1)
                accepted += await publish(person, 2)
            await asyncio.sleep(pause_s)

    coming = [asyncio.create_task(come(0.002 * number)) for number in range(4)]
    for _ in range(2):
        await asyncio.sleep(0.3)
        await crowd.workers.end(killed, signal.SIGKILL)
        assert await publish(stays, 3)
        await crowd.workers.start(killed)
        assert await publish(stays, 4)

    async def has_accepted_many() -> bool:
        return accepted > 50

    await until(has_accepted_many)
    is_over = True
    await asyncio.gather(*coming)


@pytest.mark.parametrize("shard", [0, 1])
async def test_no_descriptor_is_left_behind(crowd: Crowd, shard: int) -> None:
    async def come_and_go(count: int) -> None:
        people = [crowd.newcomer() for _ in range(count)]
        await asyncio.gather(*(publish(each, 1) for each in people))
        for each in people:
            await each.http.close()

    # As many as later, because a crowd may make a worker connect to its store once more.
    await come_and_go(40)
    await asyncio.sleep(0.3)
    before = crowd.descriptors(shard)

    async def is_as_before() -> bool:
        return len(crowd.descriptors(shard)) <= len(before)

    for _ in range(4):
        await come_and_go(40)
    with suppress(AssertionError):
        await until(is_as_before)
    left = crowd.descriptors(shard)
    assert len(left) <= len(before), {*left} - {*before}
