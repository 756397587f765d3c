"""A process without a shard serves every client, of whatever shard."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from holdfast.compose.placement import NO_SHARD, placed
from holdfast.compose.shardless_door import RunningDoor, running_door
from holdfast.compose.succession import Succession
from holdfast.settings import ChannelSettings, Settings
from tests.openmetrics import read_openmetrics
from tests.store.store_process import until
from tests.web.forwarding.operators import API
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person
from tests.web.requests import HANDSHAKE

LOGGED = "/logged"
GIVEN: dict[str, Any] = {
    "streams": True,
    "open": True,
    "channels": {LOGGED: ChannelSettings(history=9)},
}


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers(tmp_path, **GIVEN) as both:
        yield both


@pytest.fixture
async def door(both: Workers, tmp_path: Path) -> AsyncIterator[RunningDoor]:
    settings = Settings(**{"port": 0, "data": tmp_path / "data", "journal": False, **GIVEN})
    place = placed(settings, NO_SHARD, len(both.servers))
    async with running_door(settings, Succession(), place) as door:
        await until(lambda: door.parts.forwarding.is_linked)
        yield door


@pytest.fixture
async def http(door: RunningDoor) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(door.url) as http:
        yield http


async def person_at(both: Workers, url: str) -> Person:
    person = Person(url)
    both._stack.push_async_callback(person.http.close)
    return person


async def test_named_sessions_of_all_shards_are_served(both: Workers, door: RunningDoor) -> None:
    people = []
    for shard in (0, 1):
        person = await person_at(both, door.url)
        assert (await person.handshake(f"{both.subject_of(shard)}/1"))["successful"]
        assert (await person.reply("/meta/subscribe", subscription="/news"))["successful"]
        people.append(person)
    assert both.counts == [1, 1]
    assert (await people[0].reply("/news", data="hi"))["successful"]
    for person in people:
        heard = [each async for each in _heard(person)]
        assert [each["data"] for each in heard] == ["hi"]


async def _heard(person: Person) -> AsyncIterator[Json]:
    """What comes next on the channel, whenever it has arrived at the shard."""
    while True:
        found = [each for each in await person.connect(1000, ack=0) if each["channel"] == "/news"]
        for each in found:
            yield each
        if found:
            return


async def test_sessions_without_a_name_are_dealt_out(both: Workers, door: RunningDoor) -> None:
    for _ in range(4):
        assert (await (await person_at(both, door.url)).handshake())["successful"]
    assert both.counts == [2, 2]


async def test_new_sessions_go_to_the_shard_that_can_be_reached(
    both: Workers, door: RunningDoor
) -> None:
    forwarding = door.parts.forwarding
    path = forwarding._placement.link_of(1)
    path.rename(path.with_name("hidden"))
    link = forwarding._far[1]._link
    assert link is not None
    link.abort()
    await until(lambda: not forwarding.is_linked)
    assert forwarding.reaches_any
    for _ in range(3):
        assert (await (await person_at(both, door.url)).handshake())["successful"]
    assert both.counts == [3, 0]


async def test_what_is_wrong_is_refused_as_a_shard_does(
    both: Workers, door: RunningDoor, http: aiohttp.ClientSession
) -> None:
    for body in (b"{", b"[]", b'[{"channel":"/meta/connect","clientId":"invented"}]'):
        found = []
        for url in (both.urls[0], door.url):
            headers = {"Content-Type": "application/json"}
            async with http.post(f"{url}/cometd", data=body, headers=headers) as response:
                [answer] = await response.json()
                found.append((response.status, answer["error"]))
        assert found[0] == found[1]


async def test_a_socket_has_its_session_at_any_shard(
    both: Workers, http: aiohttp.ClientSession
) -> None:
    for _ in range(2):
        async with http.ws_connect("/cometd") as socket:
            await socket.send_json([HANDSHAKE])
            [greeting] = orjson.loads((await socket.receive()).data)
            client_id = greeting["clientId"]
            wanted = {"channel": "/meta/subscribe", "subscription": "/news"}
            said = {"channel": "/news", "data": 7}
            await socket.send_json([{**each, "clientId": client_id} for each in (wanted, said)])
            channels: list[str] = []
            while len(channels) < 3:
                channels += [
                    each["channel"] for each in orjson.loads((await socket.receive()).data)
                ]
            assert sorted(channels) == ["/meta/subscribe", "/news", "/news"]
    await until(lambda: sum(both.counts) == 2)


async def test_scripts_publish_and_read_histories_and_events(http: aiohttp.ClientSession) -> None:
    async with http.post("/publish", json={"channel": LOGGED, "data": 1}) as response:
        assert (response.status, (await response.json())[0]["successful"]) == (200, True)
    async with http.get(f"/streams{LOGGED}", params={"offset": "-1"}) as response:
        assert (response.status, await response.json()) == (200, [1])
    async with http.get("/events", params={"channel": LOGGED}) as response:
        assert response.status == 200
        async with http.post("/publish", json={"channel": LOGGED, "data": "later"}) as published:
            assert published.status == 200
        async for line in response.content:
            if b"later" in line:
                break


async def test_operators_see_and_change_all_shards(
    both: Workers, door: RunningDoor, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    person = await person_at(both, door.url)
    await person.handshake("ada/1")
    token = (tmp_path / "data" / "admin-token").read_text().strip()
    http.headers["Authorization"] = f"Bearer {token}"
    found: dict[str, Json] = {}
    for path in ("sessions", "shards", "about", "now", "now/tables", "figures", "channels"):
        async with http.get(f"{API}/{path}") as response:
            assert response.status == 200, await response.text()
            found[path] = await response.json()
    assert [each["key"] for each in found["sessions"]["items"]] == ["ada/1"]
    assert [each["shard"] for each in found["shards"]["items"]] == [0, 1]
    # The same as a shard says.
    async with http.get(f"{both.urls[0]}{API}/now/tables") as response:
        assert await response.json() == found["now/tables"]
    async with http.delete(f"{API}/sessions/ada/1") as response:
        assert response.status < 300, await response.text()
    assert both.counts == [0, 0]


async def test_metrics_are_those_of_all_shards(http: aiohttp.ClientSession) -> None:
    accepted = {"Accept": "application/openmetrics-text"}
    async with http.get("/metrics", headers=accepted) as response:
        assert response.status == 200
        families = read_openmetrics(await response.text())
    samples = [each for family in families for each in family.samples]
    assert {each.labels["shard"] for each in samples} == {"0", "1"}


async def test_it_is_ready_as_long_as_it_reaches_a_shard(
    door: RunningDoor, http: aiohttp.ClientSession
) -> None:
    async def answer() -> tuple[int, str]:
        async with http.get("/readyz") as response:
            return response.status, await response.text()

    assert await answer() == (200, "ready\n")
    forwarding = door.parts.forwarding
    for shard in (0, 1):
        path = forwarding._placement.link_of(shard)
        path.rename(path.with_name(f"hidden.{shard}"))
        link = forwarding._far[shard]._link
        assert link is not None
        link.abort()
    await until(lambda: not forwarding.reaches_any)
    assert await answer() == (503, "no shard can be reached\n")


async def test_it_goes_on_after_it_was_to_leave(both: Workers, door: RunningDoor) -> None:
    person = await person_at(both, door.url)
    await person.handshake("ada/1")
    await person.connect()
    held = asyncio.create_task(person.connect(60_000))
    await until(lambda: _held(both) == 1)
    await door.leave()
    # It was answered.
    assert (await held)[-1]["successful"]
    await door.take_back()
    assert (await person.connect())[-1]["successful"]


async def test_a_worker_goes_on_with_its_connections(both: Workers, door: RunningDoor) -> None:
    person = await person_at(both, door.url)
    await person.handshake("ada/1")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    assert await door.give_to("")
    both.servers[0].adopt(theirs)
    handing = asyncio.create_task(door.hand_over(ours.detach()))
    # By the same connection: nobody listens at the port any more.
    assert (await person.connect())[-1]["successful"]
    await handing
    assert (await person.connect())[-1]["successful"]


async def test_it_goes_on_with_the_connections_of_a_worker_that_has_lost_its_shard(
    both: Workers, door: RunningDoor
) -> None:
    lost = both.servers[0]
    waits, held, asks, sockets = [await person_at(both, lost.url) for _ in range(4)]
    # One has its session at the other shard, by a worker that is lost.
    await waits.handshake(f"{both.subject_of(1)}/1")
    await waits.connect()
    waiting = asyncio.create_task(waits.connect(60_000))
    # The sessions of others are lost with it, which is said to none of them.
    for n, each in enumerate((held, asks)):
        await each.handshake(f"{both.subject_of(0, f'own-{n}-')}/1")
    await held.connect()
    holding = asyncio.create_task(_status_of_connect(held))
    own = await sockets.http.ws_connect("/cometd")
    await own.send_json([HANDSHAKE])
    await own.receive()
    await until(lambda: _held(both) == 2)

    lost.storage.right.leave()
    lost.storage.is_fenced = True
    asking = asyncio.create_task(_status_of_connect(asks))
    await until(lambda: lost.doors._endpoint.scheduler.is_busy)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.adopt(theirs)
    await lost.part(ours.detach())

    assert (await waiting)[-1]["successful"]
    assert [await holding, await asking] == [0, 0]
    closed = await own.receive()
    assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1012)
    # By the same connection: nobody listens at the port any more.
    assert (await waits.connect())[-1]["successful"]


async def _status_of_connect(person: Person) -> int:
    """Return the status of a response; 0 if the connection was closed without one."""
    said = {"channel": "/meta/connect", "connectionType": "long-polling"}
    try:
        async with person.http.post(
            "/cometd", json=[{**said, "clientId": person.client_id}]
        ) as response:
            return response.status
    except aiohttp.ClientConnectionError:
        return 0


def _held(both: Workers) -> int:
    sessions = [each for shard in (0, 1) for each in both.sessions(shard)]
    return sum(each.held_connect is not None for each in sessions)
