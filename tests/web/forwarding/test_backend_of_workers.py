"""The backend decides with several workers as with one: any door asks it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.web.backend_application import BackendApplication
from tests.web.forwarding.test_scripts import message, publish
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person
from tests.web.test_backend import AWAY, DENIED

DOORS = pytest.mark.parametrize("door", [0, 1, 2])


@asynccontextmanager
async def decided(
    home: Path, count: int = 3, **given: Any
) -> AsyncIterator[tuple[Workers, BackendApplication]]:
    async with BackendApplication() as application:
        application.users |= {f"of-user{n}": f"user{n}" for n in range(20)}
        async with workers(home, count, backend=application.settings(), **given) as made:
            yield made, application


def person(made: Workers, door: int, user: str) -> Person:
    return made.person(door, Cookie=f"sessionid=of-{user}")


def shard_of(made: Workers, key: str) -> int:
    [found] = [
        shard
        for shard in range(len(made.servers))
        if any(each.subject == key for each in made.sessions(shard))
    ]
    return found


@DOORS
async def test_a_session_is_at_the_home_of_the_subject_that_the_answer_names(
    tmp_path: Path, door: int
) -> None:
    async with decided(tmp_path) as (made, application):
        for n in range(6):
            user = f"user{n}"
            ada = person(made, door, user)
            reply = await ada.handshake()
            assert reply["ext"]["authentication"] == {"subject": user, "method": "backend"}
            assert (await ada.connect())[-1]["successful"]
            ids = made.servers[shard_of(made, user)].bayeux.state.client_ids
            assert ids.owns(ids.bucket_of(user))
        assert len(application.asked) == 6, "one question for each handshake"
        assert len({shard_of(made, f"user{n}") for n in range(6)}) > 1


@DOORS
async def test_a_named_session_is_asked_about_once(tmp_path: Path, door: int) -> None:
    async with decided(tmp_path) as (made, application):
        for n in range(6):
            assert (await person(made, door, f"user{n}").handshake(f"user{n}/1"))["successful"]
        assert len(application.asked) == 6
        reply = await person(made, door, "user0").handshake("user1/1")
        assert reply["error"].startswith("403:")


@DOORS
async def test_refusals_and_failures_are_the_same_as_with_one(tmp_path: Path, door: int) -> None:
    async with decided(tmp_path) as (made, application):
        reply = await person(made, door, "nobody").handshake()
        assert reply["error"] == DENIED
        assert reply["ext"] == {"backend": {"text": "Please sign in"}}
        application.plan += [500]
        reply = await person(made, door, "user1").handshake()
        assert reply["error"] == AWAY
        assert reply["advice"]["reconnect"] == "handshake"
        assert (await made.person(door).handshake())[
            "error"
        ] == "403:no_credentials:handshake_denied"
        assert len(application.asked) == 2


async def test_a_socket_gets_the_session_of_its_subject(tmp_path: Path) -> None:
    async with decided(tmp_path) as (made, application):
        for n in range(4):
            user = f"user{n}"
            async with person(made, 0, user).http.ws_connect("/cometd") as socket:
                hello: Json = {"channel": "/meta/handshake", "id": "1"}
                await socket.send_json([{**hello, "supportedConnectionTypes": ["websocket"]}])
                [reply] = await socket.receive_json()
                assert reply["ext"]["authentication"]["subject"] == user
                ask: Json = {"channel": "/meta/subscribe", "clientId": reply["clientId"]}
                await socket.send_json([{**ask, "subscription": "/news"}])
                [answer] = await socket.receive_json()
                assert answer["successful"]
        assert len(application.asked) == 4


async def test_a_script_publishes_by_all_workers(tmp_path: Path) -> None:
    async with decided(tmp_path) as (made, _):
        script = person(made, 1, "user3")
        results = await publish(script, *(message(f"/rooms/{n}", n) for n in range(12)))
        assert all(each["successful"] for each in results)
        refused = await publish(person(made, 1, "nobody"), message("/rooms/1"))
        assert [each["error"] for each in refused] == [DENIED]


@DOORS
async def test_a_door_does_not_ask_about_what_any_worker_refuses(tmp_path: Path, door: int) -> None:
    transports = ["callback-polling", "long-polling"]
    async with decided(tmp_path, transports=transports) as (made, application):
        hello: Json = {"channel": "/meta/handshake", "supportedConnectionTypes": transports}
        given = {**hello, "ext": {"authentication": {"ticket": "of-ada"}}}
        pages = {"ours": {"Referer": f"{made.urls[door]}/"}, "another": {}}
        for page, headers in pages.items():
            client = made.person(door, Cookie="sessionid=of-ada", **headers)
            asked = {"message": orjson.dumps([given]).decode(), "jsonp": "f"}
            async with client.http.get("/cometd", params=asked) as got:
                text = await got.text()
            assert ("credentials_in_url" if page == "ours" else "origin_denied") in text
        assert not application.asked


@DOORS
async def test_an_address_has_a_budget_of_questions_at_each_door(tmp_path: Path, door: int) -> None:
    given: Json = {"budget_handshakes": 1, "trusted_proxies": ["127.0.0.1"]}
    async with decided(tmp_path, **given) as (made, application):
        far = made.person(door, Cookie="sessionid=of-ada", **{"X-Forwarded-For": "203.0.113.7"})
        statuses = await asyncio.gather(*(_status(far) for _ in range(30)))
        # A third of ten, besides what comes again meanwhile.
        assert 4 <= len(application.asked) <= 7, statuses
        assert statuses.count(429) >= 23
        near = made.person(door, Cookie="sessionid=of-bob", **{"X-Forwarded-For": "203.0.113.8"})
        assert await _status(near) == 200


async def _status(person: Person) -> int:
    hello = {"channel": "/meta/handshake", "supportedConnectionTypes": ["long-polling"]}
    async with person.http.post("/cometd", json=[hello]) as got:
        return got.status


@DOORS
async def test_a_door_survives_handshakes_of_any_form(tmp_path: Path, door: int) -> None:
    async with decided(tmp_path) as (made, _):
        for ext in ("x", [1], 7, {"authentication": "x"}, {"authentication": [1]}, {"delivery": 1}):
            client = person(made, door, "user1")
            await client.ask("/meta/handshake", supportedConnectionTypes=[], ext=ext)
        assert (await person(made, door, "user1").handshake())["successful"]
