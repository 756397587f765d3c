"""A connection without TLS goes to the worker whose requests it carries."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from holdfast.web.front.trail import IN_A_ROW
from holdfast.web.giving.taker import Taker
from holdfast.web.giving.under_way import MOST_UNDER_WAY, GivingLink
from holdfast.web.websockets.open_socket import Socket
from tests.store.store_process import until
from tests.web.doors.stage import Talk
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Person
from tests.web.people import until as until_async
from tests.web.requests import encode, post

DOORS = pytest.mark.parametrize("door", [0, 1])


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers(tmp_path, give=True, trusted_proxies=["127.0.0.1"]) as both:
        yield both


def given(both: Workers, door: int) -> int:
    """How many connections the other worker has taken from a door."""
    forwarding = both.servers[door].forwarding
    assert forwarding is not None
    return forwarding.figures.given[1 - door]


async def until_given(both: Workers, door: int, count: int = 1) -> None:
    """Wait until a door has heard that so many were taken: their clients may be answered before."""
    await until(lambda: given(both, door) == count)


def forwarded(both: Workers, door: int) -> int:
    forwarding = both.servers[door].forwarding
    assert forwarding is not None
    return forwarding.figures.forwarded[1 - door]


def link_of(both: Workers, door: int) -> GivingLink:
    forwarding = both.servers[door].forwarding
    assert forwarding is not None
    assert forwarding._giving is not None
    return forwarding._giving._links[1 - door]


def deaf(both: Workers, shard: int) -> Taker:
    """What takes connections at a worker; it reads nothing, as if the worker were frozen."""
    forwarding = both.servers[shard].forwarding
    assert forwarding is not None
    taker = forwarding._taker
    assert taker is not None
    setattr(taker, "_take_all", taker._loop.remove_reader)  # noqa: B010 - a method
    return taker


def lanes(both: Workers, at: int) -> int:
    return len(both.servers[at].listener.lanes())


@asynccontextmanager
async def talk(both: Workers, door: int) -> AsyncIterator[Talk]:
    """A connection to a door, byte for byte."""
    port = int(both.urls[door].rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Talk(reader, writer)
    finally:
        writer.close()


def message_of(person: Person, channel: str, **fields: Any) -> bytes:
    """A request of a client, byte for byte."""
    [cookie] = person.http.cookie_jar
    message = {"channel": channel, "clientId": person.client_id, **fields}
    head = ["Content-Type: application/json", f"Cookie: {cookie.key}={cookie.value}"]
    return post(encode(message), head, host="Host: 127.0.0.1")


async def publish_by(line: Talk, person: Person) -> bool:
    reply = await line.ask(message_of(person, "/news", data="hello"))
    assert reply.status == 200, reply.body
    return bool(orjson.loads(reply.body)[0]["successful"])


@DOORS
async def test_a_connection_goes_where_the_session_of_its_first_request_is(
    both: Workers, door: int
) -> None:
    ada = both.person(1 - door)
    await ada.handshake()
    other = both.at(door, ada)
    assert (await other.reply("/meta/subscribe", subscription="/news"))["successful"]
    assert (await other.reply("/news", data="hello"))["successful"]
    assert [each["data"] for each in await other.connect() if "data" in each] == ["hello"]
    await until_given(both, door)
    assert forwarded(both, door) == 0
    await until(lambda: lanes(both, door) == 0)


@DOORS
async def test_the_handshake_of_a_named_session_takes_its_connection_along(
    both: Workers, door: int
) -> None:
    ada = both.person(door)
    subject = both.subject_of(1 - door)
    assert (await ada.handshake(f"{subject}/1"))["successful"]
    assert (await ada.connect())[-1]["successful"]
    await until_given(both, door)
    assert forwarded(both, door) == 0


@DOORS
async def test_a_socket_is_opened_where_its_browser_is_at_home(both: Workers, door: int) -> None:
    ada = both.person(1 - door)
    await ada.handshake()
    other = both.at(door, ada)
    async with other.http.ws_connect("/cometd") as socket:
        kinds = {"supportedConnectionTypes": ["websocket"]}
        await socket.send_json([{"channel": "/meta/handshake", "version": "1.0", **kinds}])
        [reply] = await socket.receive_json()
        assert reply["successful"]
        await until_given(both, door)
        assert forwarded(both, door) == 0
        assert len(both.sessions(1 - door)) == 2


@DOORS
async def test_an_open_socket_follows_its_named_session(both: Workers, door: int) -> None:
    subject = both.subject_of(1 - door)
    ada = both.person(door)
    async with ada.http.ws_connect("/cometd") as socket:
        client_id = await enter_by(socket, f"{subject}/1")
        await until_given(both, door)
        await until(lambda: lanes(both, door) == 0)
        [session] = both.sessions(1 - door)
        assert session.pipe is None
        connect = {"channel": "/meta/connect", "connectionType": "websocket"}
        connect["clientId"] = client_id
        await socket.send_json([{**connect, "advice": {"timeout": 0}}])
        [reply] = await socket.receive_json()
        assert reply["successful"]
        asked = {"channel": "/meta/subscribe", "subscription": "/news", "clientId": client_id}
        await socket.send_json([asked])
        [reply] = await socket.receive_json()
        assert reply["successful"]
        await socket.send_json([connect])
        writer = both.person(1 - door)
        await writer.handshake()
        await writer.reply("/news", data="hello")
        heard: list[Any] = []
        while not any(each.get("data") == "hello" for each in heard):
            heard += await asyncio.wait_for(socket.receive_json(), 20)
        # Only its handshake took the long way.
        assert forwarded(both, door) == 1
        assert isinstance(session.pipe, Socket)


@DOORS
async def test_what_others_publish_gives_a_socket_no_session(both: Workers, door: int) -> None:
    ada, eve = both.person(door), both.person(1 - door)
    # Its browser is at home at the door, and its session at the other worker.
    await ada.handshake()
    await ada.handshake(f"{both.subject_of(1 - door)}/1")
    await ada.reply("/meta/subscribe", subscription="/news")
    await ada.connect()
    await eve.handshake()
    async with both.at(door, ada).http.ws_connect("/cometd") as socket:
        connect = {"channel": "/meta/connect", "connectionType": "websocket"}
        await socket.send_json([{**connect, "clientId": ada.client_id}])
        await until(lambda: any(each.held_connect for each in both.sessions(1 - door)))
        await eve.reply("/news", data={"channel": "/meta/handshake", "clientId": eve.client_id})
        assert "data" in (await socket.receive_json(timeout=20))[0]
        assert (await socket.receive_json(timeout=20))[0]["successful"]
        await socket.send_json([{"channel": "/news", "data": 1, "clientId": ada.client_id}])
        [reply] = await socket.receive_json(timeout=20)
        assert reply["successful"]
    assert given(both, door) == 0


async def enter_by(socket: aiohttp.ClientWebSocketResponse, name: str) -> str:
    """Begin a named session over a socket."""
    hello = {"channel": "/meta/handshake", "version": "1.0"}
    ext = {"ack": True, "delivery": {"session": name}}
    await socket.send_json([{**hello, "supportedConnectionTypes": ["websocket"], "ext": ext}])
    [reply] = await socket.receive_json()
    assert reply["successful"]
    return str(reply["clientId"])


@DOORS
async def test_a_socket_that_is_refused_goes_on_at_the_door(both: Workers, door: int) -> None:
    subject = both.subject_of(1 - door)
    full = both.servers[1 - door].listener
    full._room._limit = len(full._room)
    async with both.person(door).http.ws_connect("/cometd") as socket:
        client_id = await enter_by(socket, f"{subject}/1")
        await asyncio.sleep(0.2)
        assert given(both, door) == 0
        publish = {"channel": "/news", "clientId": client_id, "data": 1}
        for _ in range(3):
            await socket.send_json([publish])
            [reply] = await socket.receive_json()
            assert reply["successful"]
        connect = {"channel": "/meta/connect", "connectionType": "websocket"}
        await socket.send_json([{**connect, "clientId": client_id, "advice": {"timeout": 0}}])
        [reply] = await socket.receive_json()
        assert reply["successful"]
        assert forwarded(both, door) == 5


@DOORS
async def test_pages_come_from_the_worker_of_the_browser(both: Workers, door: int) -> None:
    ada = both.person(1 - door)
    await ada.handshake()
    other = both.at(door, ada)
    async with other.http.get("/healthz") as response:
        assert response.status == 200
    await until_given(both, door)


async def test_a_connection_with_an_invented_cookie_stays(both: Workers) -> None:
    strange = both.person(0, Cookie="BAYEUX_BROWSER=999" + "x" * 26)
    async with strange.http.get("/healthz") as response:
        assert response.status == 200
    assert (given(both, 0), forwarded(both, 0)) == (0, 0)


@DOORS
async def test_a_connection_that_serves_many_goes_after_a_row_for_one_worker(
    both: Workers, door: int
) -> None:
    near, far = both.person(door), both.person(1 - door)
    for each in (near, far):
        await each.handshake()
    async with talk(both, door) as line:
        for _ in range(IN_A_ROW):
            assert await publish_by(line, near)
            assert await publish_by(line, far)
        assert (given(both, door), forwarded(both, door)) == (0, IN_A_ROW)
        for _ in range(IN_A_ROW + 3):
            assert await publish_by(line, far)
        await until_given(both, door)
        assert forwarded(both, door) == 2 * IN_A_ROW - 2
        # Now the former door is the other one.
        assert await publish_by(line, near)
        assert forwarded(both, 1 - door) == 1


@DOORS
async def test_the_worker_that_takes_a_connection_knows_its_client(
    both: Workers, door: int
) -> None:
    ada = both.person(1 - door, **{"X-Forwarded-For": "192.0.2.7"})
    await ada.handshake()
    other = both.at(door, ada)
    other.http.headers["X-Forwarded-For"] = "192.0.2.8"
    assert (await other.handshake())["successful"]
    await until_given(both, door)
    found = {each.caller.address for each in both.sessions(1 - door)}
    assert found == {"192.0.2.7", "192.0.2.8"}


@DOORS
async def test_a_worker_without_room_leaves_the_connection_where_it_is(
    both: Workers, door: int
) -> None:
    ada = both.person(1 - door)
    await ada.handshake()
    full = both.servers[1 - door].listener
    full._room._limit = len(full._room)
    other = both.at(door, ada)
    for _ in range(3):
        assert (await other.reply("/news", data="hello"))["successful"]
    assert (given(both, door), forwarded(both, door)) == (0, 3)
    assert lanes(both, door) == 1
    assert len(both.servers[door].listener._room) == 1


@DOORS
async def test_a_worker_that_leaves_takes_nothing_and_nothing_is_lost(
    both: Workers, door: int
) -> None:
    ada = both.person(1 - door)
    await ada.handshake()
    await ada.connect()
    leaver = both.servers[1 - door]
    await leaver.leave()
    waiting = asyncio.create_task(both.at(door, ada).reply("/news", data="hello"))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await leaver.take_back()
    assert (await asyncio.wait_for(waiting, 20))["successful"]
    assert (given(both, door), forwarded(both, door)) == (0, 1)
    assert (await both.at(door, ada).reply("/news", data="hello"))["successful"]
    await until_given(both, door)


@DOORS
async def test_what_a_worker_has_not_answered_when_it_ends_goes_on_at_the_door(
    both: Workers, door: int
) -> None:
    ada = both.person(1 - door)
    await ada.handshake()
    taker = deaf(both, 1 - door)
    others = [both.at(door, ada) for _ in range(3)]
    waiting = [asyncio.create_task(each.reply("/news", data="hello")) for each in others]
    link = link_of(both, door)
    await until(lambda: len(link._under_way) == 3)
    assert not any(each.done() for each in waiting)
    taker.close()
    for each in waiting:
        assert (await asyncio.wait_for(each, 20))["successful"]
    assert (given(both, door), forwarded(both, door)) == (0, 3)
    assert link.is_settled


@DOORS
async def test_only_so_many_connections_are_on_their_way(both: Workers, door: int) -> None:
    ada = both.person(1 - door)
    await ada.handshake()
    taker = deaf(both, 1 - door)
    people = [both.at(door, ada) for _ in range(MOST_UNDER_WAY + 1)]
    asking = [asyncio.create_task(each.reply("/news", data=1)) for each in people]
    await until(lambda: forwarded(both, door) == 1)
    assert len(link_of(both, door)._under_way) == MOST_UNDER_WAY
    taker.close()
    for each in asking:
        assert (await asyncio.wait_for(each, 20))["successful"]


@DOORS
async def test_no_descriptor_is_left_behind(both: Workers, door: int) -> None:
    ada = both.person(1 - door)
    await ada.handshake()

    async def come_and_go(count: int) -> None:
        for _ in range(count):
            async with talk(both, door) as line:
                assert await publish_by(line, ada)
        await until(lambda: lanes(both, door) == 0 and lanes(both, 1 - door) == 1)

    await come_and_go(2)
    await until_given(both, door, 2)
    before = len(os.listdir("/proc/self/fd"))
    await come_and_go(50)
    await until_given(both, door, 52)
    assert len(os.listdir("/proc/self/fd")) <= before


@DOORS
async def test_a_client_that_leaves_on_the_way_leaves_nothing(both: Workers, door: int) -> None:
    ada = both.person(1 - door)
    await ada.handshake()
    for _ in range(20):
        async with talk(both, door) as line:
            line.send(message_of(ada, "/news", data=1))
    await until(lambda: lanes(both, door) == 0 and lanes(both, 1 - door) == 1)
    await until(lambda: link_of(both, door).is_settled)
    assert len(both.servers[door].listener._room) == 0
    assert len(both.servers[1 - door].listener._room) == 1


@DOORS
async def test_requests_behind_the_first_one_are_answered_in_order(
    both: Workers, door: int
) -> None:
    ada = both.person(1 - door)
    await ada.handshake()
    async with talk(both, door) as line:
        line.send(b"".join(message_of(ada, "/news", data=number) for number in range(5)))
        for _ in range(5):
            assert orjson.loads((await line.response()).body)[0]["successful"]


@DOORS
async def test_messages_of_a_given_connection_come_once(both: Workers, door: int) -> None:
    ada = both.person(1 - door)
    hello = {"supportedConnectionTypes": ["long-polling"], "ext": {"delivery": True}}
    ada.client_id = (await ada.reply("/meta/handshake", **hello))["clientId"]
    await ada.reply("/meta/subscribe", subscription="/news")
    writer = both.person(1 - door)
    await writer.handshake()
    near = both.person(door)
    await near.handshake()
    asking = message_of(ada, "/meta/connect", connectionType="long-polling", advice={"timeout": 0})
    heard = []
    async with talk(both, door) as line:
        # So that the connection is not given at once.
        assert await publish_by(line, near)
        for number in range(2 * IN_A_ROW):
            assert (await writer.reply("/news", data=number))["successful"]
            replies = orjson.loads((await line.ask(asking)).body)
            heard += [each["data"] for each in replies if "data" in each]
        await asyncio.sleep(0.6)

        async def has_heard_all() -> bool:
            replies = orjson.loads((await line.ask(asking)).body)
            heard.extend(each["data"] for each in replies if "data" in each)
            return len([each for each in heard if isinstance(each, int)]) >= 2 * IN_A_ROW

        await until_async(has_heard_all)
    await until_given(both, door)
    assert [each for each in heard if isinstance(each, int)] == [*range(2 * IN_A_ROW)]


async def test_metrics_count_given_connections(both: Workers) -> None:
    ada = both.person(1)
    await ada.handshake()
    await both.at(0, ada).reply("/news", data=1)
    await until_given(both, 0)
    async with aiohttp.ClientSession() as http, http.get(f"{both.urls[0]}/metrics") as response:
        text = await response.text()
    assert 'holdfast_connections_given_total{shard="0",to="1"} 1.0' in text
