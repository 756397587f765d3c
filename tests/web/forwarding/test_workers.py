"""Clients may use any worker as their door."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast import Client
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.publish_requests import PublishRequests
from tests.client.conftest import LONG_POLLING, WEBSOCKET, Basket
from tests.store.store_process import until
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person, passwords
from tests.web.people import until as until_async

DOORS = pytest.mark.parametrize("door", [0, 1])


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers(tmp_path) as both:
        yield both


@DOORS
async def test_a_client_without_a_cookie_gets_a_session_of_its_door(
    both: Workers, door: int
) -> None:
    ada = both.person(door)
    assert (await ada.handshake())["successful"]
    assert len(both.sessions(door)) == 1
    ids = both.servers[door].bayeux.state.client_ids
    [cookie] = ada.http.cookie_jar
    assert ids.owns(ids.bucket_in(ada.client_id))
    assert ids.owns(ids.bucket_in(cookie.value))


@DOORS
async def test_a_session_is_reached_by_any_door(both: Workers, door: int) -> None:
    ada = both.person(door)
    await ada.handshake()
    other = both.at(1 - door, ada)
    assert (await other.reply("/meta/subscribe", subscription="/news"))["successful"]
    assert (await ada.connect())[-1]["successful"]
    assert (await other.reply("/news", data="hello"))["successful"]
    events = await other.connect()
    assert [each["data"] for each in events if "data" in each] == ["hello"]
    assert both.counts == [1 - door, door]


@DOORS
async def test_sessions_of_a_browser_are_in_one_shard(both: Workers, door: int) -> None:
    ada = both.person(door)
    await ada.handshake()
    tab = both.at(1 - door, ada)
    assert (await tab.handshake())["successful"]
    assert len(both.sessions(door)) == 2
    assert (await tab.connect())[-1]["successful"]
    assert (await ada.connect())[-1]["successful"]


@DOORS
async def test_a_named_session_is_at_the_home_of_its_subject(both: Workers, door: int) -> None:
    subject = both.subject_of(1 - door)
    ada = both.person(door)
    reply = await ada.handshake(f"{subject}/1")
    assert reply["ext"]["delivery"]["session"]["name"] == f"client/{subject}/1"
    assert [each.key for each in both.sessions(1 - door)] == [f"{subject}/1"]
    assert both.sessions(door) == []
    assert (await ada.connect())[-1]["successful"]


async def deliver(both: Workers, home: int, abroad: Person) -> list[int]:
    """Publish a message at the home; return what the client gets at the other door."""
    publisher = both.person(home)
    await publisher.handshake()
    await publisher.reply("/news", data=1)
    return [each["data"] for each in await abroad.connect() if "data" in each]


@DOORS
async def test_messages_are_given_once_to_a_client_without_acks(both: Workers, door: int) -> None:
    ada = both.person(1 - door)
    hello = {"supportedConnectionTypes": ["long-polling"], "ext": {"delivery": True}}
    ada.client_id = (await ada.reply("/meta/handshake", **hello))["clientId"]
    await ada.reply("/meta/subscribe", subscription="/news")
    abroad = both.at(door, ada)
    await abroad.connect()
    assert await deliver(both, 1 - door, abroad) == [1]
    assert [each["channel"] for each in await abroad.connect()] == ["/meta/connect"]


@DOORS
@pytest.mark.parametrize("returns_at", [0, 1])
async def test_messages_on_a_lost_connection_come_again(
    both: Workers, door: int, returns_at: int
) -> None:
    ada = both.person(1 - door)
    hello = {"supportedConnectionTypes": ["long-polling"], "ext": {"delivery": True}}
    ada.client_id = (await ada.reply("/meta/handshake", **hello))["clientId"]
    await ada.reply("/meta/subscribe", subscription="/news")
    abroad, again = both.at(door, ada), both.at(returns_at, ada)
    await abroad.connect()
    assert await deliver(both, 1 - door, abroad) == [1]
    await abroad.http.close()
    # A door looks for lost connections a few times a second, and tells the home of them.
    forwarding = both.servers[door].forwarding
    assert forwarding is not None
    far = forwarding._far[1 - door]
    await until(lambda: len(far._given) == 0)
    assert [each["data"] for each in await again.connect() if "data" in each] == [1]


@DOORS
async def test_a_name_is_taken_over_by_way_of_another_door(both: Workers, door: int) -> None:
    subject = both.subject_of(door)
    first, second = both.person(0), both.person(1)
    await first.handshake(f"{subject}/1")
    await first.connect()
    assert (await second.handshake(f"{subject}/1"))["ext"]["delivery"]["resumed"]
    taken = (await first.connect())[-1]
    assert (taken["error"], taken["advice"]["reconnect"]) == ("402::session_taken", "none")
    assert (await second.connect())[-1]["successful"]
    assert sum(both.counts) == 1
    stranger = both.person(1 - door)
    await stranger.handshake()
    stranger.client_id = first.client_id
    assert (await stranger.connect())[-1]["error"] == "402::session_unknown"


@DOORS
@pytest.mark.parametrize("transport", [WEBSOCKET, LONG_POLLING])
async def test_the_python_client_does_not_notice_that_its_session_is_elsewhere(
    both: Workers, door: int, transport: str
) -> None:
    basket, subject = Basket(), both.subject_of(1 - door)
    at_home = both.person(1 - door)
    await at_home.handshake()
    session = Client(both.urls[door], session=f"{subject}/1", transports=[transport])
    async with session as client, client.subscribe("/news", basket):
        for number in range(5):
            await client.publish("/news", number)
            await at_home.reply("/news", data=number + 100)
        data = await basket.data(10)
        assert [each for each in data if each < 100] == [*range(5)]
        assert [each for each in data if each >= 100] == [*range(100, 105)]
        assert len(both.sessions(1 - door)) == 2
        assert both.sessions(door) == []


@DOORS
async def test_what_scripts_publish_without_a_session_arrives_at_any_door(
    both: Workers, door: int
) -> None:
    ada = both.person(door)
    await ada.handshake()
    await ada.reply("/meta/subscribe", subscription="/news")
    await ada.connect()
    body = {"channel": "/news", "data": "from a script"}
    async with both.person(door).http.post("/publish", json=body) as response:
        [result] = await response.json()
    assert result["successful"], result
    events = await ada.connect(5000)
    assert [each["data"] for each in events if "data" in each] == ["from a script"]


async def test_a_script_learns_when_to_publish_again_what_one_worker_has_refused(
    both: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(*_: object) -> object:
        raise RequestRefused(ErrorReply.SERVER_BUSY, wait_s=2.0)

    parts: Iterator[Any] = iter([refuses, PublishRequests._publish_part])
    monkeypatch.setattr(PublishRequests, "_publish_part", lambda *args: next(parts)(*args))
    body = [{"channel": f"/rooms/{n}", "data": n} for n in range(20)]
    async with both.person(0).http.post("/publish", json=body) as response:
        assert response.status == 200
        results = await response.json()
    assert {each["successful"] for each in results} == {True, False}
    for each in results:
        if not each["successful"]:
            assert each["error"] == "503::server_busy"
            assert (each["advice"]["reconnect"], each["advice"]["interval"]) == ("retry", 2000)


@DOORS
async def test_a_login_is_checked_by_the_home_of_its_subject(tmp_path: Path, door: int) -> None:
    async with workers(tmp_path, login_passwords=passwords(tmp_path)) as both:
        home = both.home_of("ada")
        ada, eve = both.person(door), both.person(door)
        denied = await eve.handshake(user="ada", password="wrong")
        assert denied["error"] == "403::handshake_denied"
        reply = await ada.handshake(user="ada", password="correct horse")
        assert reply["ext"]["authentication"]["subject"] == "ada"
        assert [each.subject for each in both.sessions(home)] == ["ada"]
        assert both.sessions(1 - home) == []
        failed = [each.bayeux.state.counters.logins["failed"] for each in both.servers]
        assert failed == [1 - home, home]


@DOORS
async def test_callback_polling_works_by_any_door(tmp_path: Path, door: int) -> None:
    async with workers(tmp_path, transports=["callback-polling"]) as both:
        subject = both.subject_of(1 - door)
        message = (
            '[{"channel":"/meta/handshake","version":"1.0","supportedConnectionTypes":'
            f'["callback-polling"],"ext":{{"delivery":{{"session":"{subject}/1"}}}}}}]'
        )
        query = {"message": message, "jsonp": "hear"}
        headers = {"Sec-Fetch-Dest": "script", "Sec-Fetch-Site": "same-origin"}
        async with both.person(door, **headers).http.get("/cometd", params=query) as response:
            text = await response.text()
        assert text.startswith("/**/hear([{")
        assert '"successful":true' in text
        assert [each.key for each in both.sessions(1 - door)] == [f"{subject}/1"]


async def test_each_request_speaks_for_one_session_wherever_others_are(both: Workers) -> None:
    ada, bob = both.person(0), both.person(1)
    await ada.handshake()
    await bob.handshake()
    publishes = [{"channel": "/news", "data": 1, "clientId": each.client_id} for each in (ada, bob)]
    async with ada.http.post("/cometd", json=publishes) as response:
        first, second = await response.json()
    assert first["successful"]
    assert second["error"] == "402::session_unknown"


async def test_proxies_learn_which_shard_has_which_buckets(both: Workers) -> None:
    async with both.person(1).http.get("/cluster/map") as response:
        assert response.status == 200
        assert await response.json() == {"v": 1, "ranges": [[0, 499, 0], [500, 999, 1]]}


class SocketPerson:
    """A client with an open WebSocket."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def say(self, channel: str, **fields: Any) -> Json:
        """Send a message; return its reply."""
        await self.ws.send_json([{"channel": channel, **fields}])
        while True:
            for message in await self.ws.receive_json(timeout=60):
                if message["channel"] == channel and "successful" in message:
                    reply: Json = message
                    return reply

    async def enter(self, subject: str) -> str:
        """Begin the session of a subject on this socket."""
        reply = await self.say(
            "/meta/handshake",
            version="1.0",
            supportedConnectionTypes=["websocket"],
            ext={"delivery": {"session": f"{subject}/1"}},
        )
        client_id: str = reply["clientId"]
        await self.connect(client_id)
        return client_id

    async def connect(self, client_id: str) -> Json:
        return await self.say(
            "/meta/connect",
            clientId=client_id,
            connectionType="websocket",
            advice={"timeout": 0},
        )


@DOORS
async def test_a_new_browser_may_open_its_socket_at_another_door(both: Workers, door: int) -> None:
    # As a browser, which has no cookie before the first reply.
    ada, socket = (both.person(each, Origin=both.urls[each]) for each in (door, 1 - door))
    async with socket.http.ws_connect("/cometd") as ws:
        await ada.handshake()
        assert (await SocketPerson(ws).connect(ada.client_id))["successful"]


@DOORS
async def test_a_socket_has_the_session_of_one_home_only(both: Workers, door: int) -> None:
    async with both.person(0).http.ws_connect("/cometd") as ws:
        client = SocketPerson(ws)
        await client.enter(both.subject_of(door))
        [first] = both.sessions(door)
        assert first.pipe is not None
        await client.enter(both.subject_of(1 - door))
        [second] = both.sessions(1 - door)
        await until(lambda: first.pipe is None)
        assert second.pipe is not None
        await client.enter(both.subject_of(door))
        await until(lambda: second.pipe is None)
        assert first.pipe is not None


@asynccontextmanager
async def moved_socket(both: Workers, door: int) -> AsyncIterator[tuple[SocketPerson, str, str]]:
    """A socket with the client ids of its former session and its present one, of another shard."""
    async with both.person(0).http.ws_connect("/cometd") as ws:
        client = SocketPerson(ws)
        former = await client.enter(both.subject_of(1 - door))
        yield client, former, await client.enter(both.subject_of(door))


@DOORS
async def test_only_a_connect_brings_a_socket_a_session_of_another_shard(
    both: Workers, door: int
) -> None:
    async with moved_socket(both, door) as (client, other, own):
        reply = await client.say("/news", data=1, clientId=other)
        assert reply["error"] == "402::session_unknown"
        assert (await client.say("/news", data=1, clientId=own))["successful"]
        assert (await client.connect(other))["successful"]
        assert (await client.say("/news", data=1, clientId=other))["successful"]


@DOORS
async def test_a_socket_whose_session_has_ended_takes_that_of_another_shard(
    both: Workers, door: int
) -> None:
    async with moved_socket(both, door) as (client, other, own):
        ends = {"delivery": {"end": True}}
        assert (await client.say("/meta/disconnect", clientId=own, ext=ends))["successful"]
        assert (await client.say("/news", data=1, clientId=other))["successful"]


@DOORS
async def test_the_socket_of_a_session_that_the_server_ends_is_closed(
    both: Workers, door: int
) -> None:
    subject, other = both.subject_of(door), both.person(0)
    async with both.person(0).http.ws_connect("/cometd") as ws:
        await SocketPerson(ws).enter(subject)
        other.wants = {"delivery": {"session": {"name": f"{subject}/2", "clearSessions": True}}}
        assert (await other.handshake())["successful"]
        while (await ws.receive(timeout=60)).type is aiohttp.WSMsgType.TEXT:
            pass
        assert ws.close_code == aiohttp.WSCloseCode.OK


@pytest.mark.parametrize("door", [0, 1])
async def test_a_client_goes_on_at_any_door_with_the_cookie_of_its_socket(
    both: Workers, door: int
) -> None:
    """Its handshake and its socket came at the same time, at different doors, without cookies."""
    ada, other = both.person(door), both.person(1 - door)
    await ada.handshake()
    ada.http.cookie_jar.clear()
    async with other.http.ws_connect("/cometd"):
        [cookie] = other.http.cookie_jar
        ada.http.cookie_jar.update_cookies({cookie.key: cookie.value})

        async def goes_on() -> bool:
            # The other worker hears of the cookie over a link.
            return bool((await ada.connect())[-1]["successful"])

        await until_async(goes_on)
