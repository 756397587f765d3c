"""A worker that leaves its place, and takes it back, costs clients at other doors nothing."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.store.store_process import until
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Person

pytestmark = pytest.mark.untraced


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers(tmp_path) as both:
        yield both


async def enter(both: Workers, home: int) -> tuple[Person, Person]:
    """A client with a session of a home, at its door and at the other one."""
    ada = both.person(home)
    await ada.handshake()
    await ada.connect()
    await ada.reply("/meta/subscribe", subscription="/news")
    return ada, both.at(1 - home, ada)


async def hold(both: Workers, person: Person, home: int) -> "asyncio.Task[bool]":
    """A connect that is held."""

    async def connect() -> bool:
        return bool((await person.connect(30_000))[-1]["successful"])

    held = asyncio.create_task(connect())
    [session] = both.sessions(home)
    await until(lambda: session.held_connect is not None)
    return held


@pytest.mark.parametrize("home", [0, 1])
async def test_what_is_forwarded_to_a_worker_that_leaves_waits_for_the_next(
    both: Workers, home: int
) -> None:
    _, abroad = await enter(both, home)
    held = await hold(both, abroad, home)
    leaver = both.servers[home]
    await leaver.leave()
    assert await asyncio.wait_for(held, 20)
    publish = asyncio.create_task(abroad.reply("/news", data="hello"))
    await asyncio.sleep(0.3)
    assert not publish.done()
    await leaver.take_back()
    assert (await asyncio.wait_for(publish, 20))["successful"]


async def test_a_door_that_leaves_answers_held_connects_of_other_shards(both: Workers) -> None:
    _, abroad = await enter(both, 0)
    held = await hold(both, abroad, 0)
    leaver = both.servers[1]
    await leaver.leave()
    assert await asyncio.wait_for(held, 20)
    await leaver.take_back()
    assert (await abroad.reply("/news", data="hello"))["successful"]


async def test_workers_may_leave_at_the_same_time(both: Workers) -> None:
    _, abroad = await enter(both, 0)
    held = await hold(both, abroad, 0)
    await asyncio.gather(*(each.leave() for each in both.servers))
    assert await asyncio.wait_for(held, 20)
    publish = asyncio.create_task(abroad.reply("/news", data="hello"))
    await asyncio.gather(*(each.take_back() for each in both.servers))
    assert (await asyncio.wait_for(publish, 20))["successful"]


async def test_a_worker_that_goes_on_first_waits_for_the_others(both: Workers) -> None:
    _, abroad = await enter(both, 0)
    await asyncio.gather(*(each.leave() for each in both.servers))
    home, door = both.servers
    await door.take_back()
    publish = asyncio.create_task(abroad.reply("/news", data="hello"))
    await asyncio.sleep(0.3)
    assert not publish.done()
    await home.take_back()
    assert (await asyncio.wait_for(publish, 20))["successful"]


@pytest.mark.parametrize("stopped", [0, 1], ids=["home", "door"])
async def test_a_worker_that_stops_answers_held_connects(both: Workers, stopped: int) -> None:
    _, abroad = await enter(both, 0)
    held = await hold(both, abroad, 0)
    await both.servers[stopped].stop(2.0)
    assert await asyncio.wait_for(held, 20)


async def test_what_a_script_publishes_is_answered_before_all_workers_leave(both: Workers) -> None:
    home = both.home_of("address 127.0.0.1\n/news")
    await both.delay(1 - home, home, 0.03)
    script = both.person(1 - home)
    # It takes a handshake and then the publish, both at its home.
    message = {"channel": "/news", "data": "hello"}
    publish = asyncio.create_task(script.http.post("/publish", json=message))
    await until(lambda: both.sessions(home) != [])
    await asyncio.gather(*(each.leave() for each in both.servers))
    response = await asyncio.wait_for(publish, 20)
    assert response.status == 200, await response.text()
