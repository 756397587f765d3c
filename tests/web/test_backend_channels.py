"""The backend decides about channels: what a session sends behind a question waits in its order."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.web.people import Json, Person, until
from tests.web.test_backend import AWAY, Decided, decided

pytestmark = pytest.mark.untraced

RIGHTS = """
[[rule]]
who = ["*"]
ask = ["subscribe", "publish"]
channels = ["/orders/**"]

[[rule]]
who = ["*"]
may = ["create", "history", "replay"]
channels = ["/orders/**"]

[[rule]]
who = ["*"]
may = ["subscribe", "publish", "create"]
channels = ["/free/**", "/orders"]

[[rule]]
who = ["*"]
may_not = ["publish"]
channels = ["/orders/locked"]
"""
SUBSCRIBE_DENIED = "403:denied_by_backend:subscribe_denied"
PUBLISH_DENIED = "403:denied_by_backend:publish_denied"
YES: Json = {"allow": True}


def allow(made: Decided, *channels: str, **more: Any) -> None:
    for channel in channels:
        for action in ("subscribe", "publish"):
            made.application.table[action, channel] = YES | more


async def client(made: Decided, cookie: str = "of-ada", session: str | None = None) -> Person:
    person = made.person(cookie)
    person.wants = {"ack": False}
    reply = await person.handshake(session)
    assert reply["successful"], reply
    return person


async def send(person: Person, *messages: Json) -> list[Json]:
    """Send messages in one request. Returns all that comes back."""
    body = [{"clientId": person.client_id, **each} for each in messages]
    async with person.http.post("/cometd", json=body) as response:
        found: list[Json] = await response.json()
        return found


def subscribe(channel: str | list[str]) -> Json:
    return {"channel": "/meta/subscribe", "subscription": channel}


def connect() -> Json:
    return {
        "channel": "/meta/connect",
        "connectionType": "long-polling",
        "advice": {"timeout": 0},
    }


class Holding:
    """Lets the next question wait for its answer."""

    def __init__(self, made: Decided) -> None:
        self._is_over = asyncio.Event()
        made.application.plan.append(self._answer)

    async def _answer(self, _: web.Request) -> web.Response:
        await self._is_over.wait()
        return web.json_response(YES)

    def end(self) -> None:
        self._is_over.set()


async def test_the_backend_is_asked_where_a_rule_says_so(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        ada = await client(made)
        assert (await ada.reply("/meta/subscribe", subscription="/free/a"))["successful"]
        assert made.application.count("subscribe") == 0
        assert (await ada.reply("/meta/subscribe", subscription="/orders/7"))["successful"]
        assert (await ada.reply("/orders/7", data=1))["successful"]
        asked = made.application.asked[-1]
        assert asked.action == "publish"
        assert asked.data == {"address": "127.0.0.1", "subject": "ada", "channel": "/orders/7"}
        assert asked.headers["Cookie"] == "sessionid=of-ada"
        assert [each["data"] for each in await ada.connect() if "data" in each] == [1]


async def test_a_refusal_has_the_text_of_the_backend(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        ada = await client(made)
        reply = await ada.reply("/meta/subscribe", subscription="/orders/8")
        assert reply["error"] == SUBSCRIBE_DENIED
        assert reply["ext"]["backend"] == {"text": "Not yours: /orders/8"}
        made.application.table["publish", "/orders/8"] = {"allow": False, "detail": "Paid\nonly"}
        reply = await ada.reply("/orders/8", data=1)
        assert reply["error"] == PUBLISH_DENIED
        assert reply["ext"]["backend"] == {"text": "Paid only"}


async def test_a_denial_of_the_rules_needs_no_question(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/locked")
        ada = await client(made)
        assert (await ada.reply("/orders/locked", data=1))["error"].startswith("403:denied_by_rig")
        assert made.application.count("publish") == 0


async def test_one_question_is_asked_as_long_as_its_answer_holds(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        allow(made, "/orders/8", expires_in=1)
        ada = await client(made)
        assert (await ada.reply("/orders/8", data=1))["successful"]
        for _ in range(5):
            assert (await ada.reply("/orders/7", data=1))["successful"]
            assert not (await ada.reply("/orders/9", data=1))["successful"]
        assert sorted(made.application.about_channels("publish")) == [
            "/orders/7",
            "/orders/8",
            "/orders/9",
        ]
        await asyncio.sleep(1.1)
        assert (await ada.reply("/orders/7", data=1))["successful"]
        assert (await ada.reply("/orders/8", data=1))["successful"]
        assert made.application.about_channels("publish").count("/orders/7") == 1
        assert made.application.about_channels("publish").count("/orders/8") == 2
        # Another session has decisions of its own.
        assert (await (await client(made)).reply("/orders/7", data=1))["successful"]
        assert made.application.about_channels("publish").count("/orders/7") == 2


async def test_a_batch_is_handled_in_its_order(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        made.application.delay_s = 0.1
        ada = await client(made)
        found = await send(
            ada,
            subscribe("/orders/7"),
            {"channel": "/orders/7", "data": 1},
            {"channel": "/free/a", "data": "x"},
            {"channel": "/orders/8", "data": 2},
            {"channel": "/orders/7", "data": 3},
            connect(),
        )
        replies = [each for each in found if "successful" in each]
        assert [each["channel"] for each in replies] == [
            *("/meta/subscribe", "/orders/7", "/free/a", "/orders/8", "/orders/7"),
            "/meta/connect",
        ]
        assert [each["successful"] for each in replies] == [True, True, True, False, True, True]
        found += await ada.connect()
        assert [each["data"] for each in found if "data" in each] == [1, 3]


async def test_what_follows_in_other_requests_waits_in_its_order(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        ada, bob = await client(made), await client(made, "of-bob")
        assert (await bob.reply("/meta/subscribe", subscription="/free/*"))["successful"]
        assert (await bob.reply("/meta/subscribe", subscription="/orders/7"))["successful"]
        holding = Holding(made)
        first = asyncio.create_task(ada.reply("/orders/7", data="asked"))
        await made.application.heard(4)
        behind = []
        for n in range(5):
            behind.append(asyncio.create_task(ada.reply("/free/a", data=n)))
            await asyncio.sleep(0.02)
        assert not any(each.done() for each in behind)
        # Other sessions do not wait.
        assert (await bob.reply("/free/b", data="bob"))["successful"]
        assert not first.done()
        holding.end()
        assert (await first)["successful"]
        assert all(each["successful"] for each in await asyncio.gather(*behind))
        found: list[Any] = []
        while len(found) < 7:
            found += [each["data"] for each in await bob.connect(500) if "data" in each]
        assert found == ["bob", "asked", 0, 1, 2, 3, 4]


async def test_over_a_socket_messages_wait_in_their_order(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        made.application.delay_s = 0.2
        async with made.person().http.ws_connect("/cometd") as socket:
            await socket.send_json(
                [{"channel": "/meta/handshake", "supportedConnectionTypes": ["websocket"]}]
            )
            [hello] = await socket.receive_json()
            who = {"clientId": hello["clientId"]}
            await socket.send_json([{**subscribe("/free/a"), **who}])
            await socket.send_json([{**subscribe("/orders/7"), **who}])
            await socket.send_json([{"channel": "/orders/7", "data": 1, **who}])
            await socket.send_json([{"channel": "/free/a", "data": 2, **who}])
            found: list[Json] = []
            while len([each for each in found if "successful" in each]) < 4:
                found += await socket.receive_json()
            assert all(each.get("successful", True) for each in found), found
            replies = [each["channel"] for each in found if "successful" in each]
            assert replies == ["/meta/subscribe", "/meta/subscribe", "/orders/7", "/free/a"]
        assert [each.action for each in made.application.asked] == [
            *("handshake", "subscribe", "publish")
        ]


async def test_a_batch_of_questions_takes_about_one_answer(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        names = [f"/orders/{n}" for n in range(8)]
        allow(made, *names)
        made.application.delay_s = 0.4
        ada = await client(made)
        replies = await send(ada, *(subscribe(each) for each in names))
        assert all(each["successful"] for each in replies)
        assert made.application.most_open == 8
        made.application.most_open = 0
        bob = await client(made, "of-bob")
        [reply] = await send(bob, subscribe(names))
        assert reply["successful"]
        assert made.application.most_open == 8


async def test_a_backend_that_does_not_answer_is_a_503_after_two_seconds(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        ada = await client(made)
        made.application.delay_s = 4
        began_s = time.monotonic()
        found = await send(
            ada,
            {"channel": "/orders/7", "data": 1},
            {"channel": "/orders/8", "data": 2},
            {"channel": "/free/a", "data": 3},
        )
        assert 1.9 < time.monotonic() - began_s < 10
        assert [each.get("error") for each in found] == [AWAY, AWAY, None]
        assert found[0]["advice"]["reconnect"] == "retry"
        made.application.delay_s = 0
        await asyncio.sleep(1.1)
        assert (await ada.reply("/orders/7", data=1))["successful"]


@pytest.mark.parametrize("status", [200, 301, 404, 500])
async def test_what_is_no_clear_answer_allows_nothing(tmp_path: Path, status: int) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        ada = await client(made)
        made.application.plan += [status] * 2
        assert (await ada.reply("/meta/subscribe", subscription="/orders/7"))["error"] == AWAY
        assert (await ada.reply("/orders/7", data=1))["error"] == AWAY


async def test_a_session_that_ends_while_a_question_is_open_is_gone(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        ada = await client(made, session="ada/1")
        holding = Holding(made)
        waiting = asyncio.create_task(ada.reply("/orders/7", data=1))
        await made.application.heard(2)
        other = await client(made, session="ada/1")
        holding.end()
        assert (await waiting)["error"].startswith("402:")
        assert (await other.connect())[-1]["successful"]


async def test_a_lost_connection_loses_no_message(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        ada, bob = await client(made), await client(made, "of-bob")
        assert (await bob.reply("/meta/subscribe", subscription="/orders/7"))["successful"]
        holding = Holding(made)
        body = [{"channel": "/orders/7", "data": 1, "clientId": ada.client_id}]
        posting = asyncio.create_task(ada.http.post("/cometd", json=body))
        await made.application.heard(4)
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)
        holding.end()
        found: list[Json] = []
        while not found:
            found += [each for each in await bob.connect(500) if "data" in each]
        assert [each["data"] for each in found] == [1]


async def test_changed_rules_have_the_backend_asked_again(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7", "/orders/8")
        ada = await client(made)
        for channel in ("/orders/7", "/orders/8"):
            assert (await ada.reply("/meta/subscribe", subscription=channel))["successful"]
        assert (await ada.reply("/orders/7", data=1))["successful"]
        assert made.application.count("subscribe") == 2
        del made.application.table["subscribe", "/orders/8"]
        (tmp_path / "rights.toml").write_text(RIGHTS + "\n# changed\n")

        async def is_asked() -> bool:
            return made.application.count("subscribe") == 4

        await until(is_asked)
        publisher = await client(made, "of-bob")

        async def has_lost_it() -> bool:
            for channel in ("/orders/7", "/orders/8"):
                assert (await publisher.reply(channel, data=2))["successful"]
            found = [each["channel"] for each in await ada.connect() if "data" in each]
            return "/orders/7" in found and "/orders/8" not in found

        await until(has_lost_it)
        assert (await ada.reply("/orders/7", data=1))["successful"]
        assert made.application.about_channels("publish").count("/orders/7") == 3


async def test_a_subscription_is_asked_about_before_its_decision_ends(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7", expires_in=2)
        ada = await client(made)
        assert (await ada.reply("/meta/subscribe", subscription="/orders/7"))["successful"]

        async def is_asked_again() -> bool:
            return made.application.count("subscribe") >= 3

        await until(is_asked_again)
        assert (await ada.reply("/orders/7", data=1))["successful"]
        assert [each["data"] for each in await ada.connect() if "data" in each] == [1]
        del made.application.table["subscribe", "/orders/7"]
        made.application.table["publish", "/orders/7"] = YES

        async def has_lost_it() -> bool:
            assert (await ada.reply("/orders/7", data=1))["successful"]
            return not [each for each in await ada.connect() if "data" in each]

        await until(has_lost_it)


async def test_a_subscription_ends_with_its_decision_if_nobody_answers(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7", expires_in=2)
        ada, began_s = await client(made), time.monotonic()
        assert (await ada.reply("/meta/subscribe", subscription="/orders/7"))["successful"]
        made.application.table["publish", "/orders/7"] = YES
        assert (await ada.reply("/orders/7", data=1))["successful"]
        made.application.plan += [500] * 1000

        async def has_lost_it() -> bool:
            assert (await ada.reply("/orders/7", data=1))["successful"]
            return not [each for each in await ada.connect() if "data" in each]

        await until(has_lost_it)
        assert time.monotonic() - began_s > 1


async def test_a_login_is_asked_about_before_it_ends(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        made.application.about["ada"] = {"expires_in": 2}
        ada = await client(made)

        async def is_refreshed() -> bool:
            return made.application.count("refresh") >= 2

        await until(is_refreshed)
        asked = next(each for each in made.application.asked if each.action == "refresh")
        assert asked.data["subject"] == "ada"
        assert asked.headers["Cookie"] == "sessionid=of-ada"
        assert (await ada.connect())[-1]["successful"]
        del made.application.users["of-ada"]
        await until(ada.is_out)


async def test_a_login_does_not_become_another_subjects(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        made.application.about["ada"] = {"expires_in": 2}
        ada = await client(made)
        made.application.users["of-ada"] = "bob"
        await until(ada.is_out)


async def test_scripts_are_asked_about_too(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        messages = [{"channel": f"/orders/{n}", "data": n} for n in (7, 8, 7)]
        async with made.person().http.post("/publish", json=messages) as response:
            results = await response.json()
        assert [each.get("error") for each in results] == [None, PUBLISH_DENIED, None]
        assert made.application.about_channels("publish") == ["/orders/7", "/orders/8"]


async def test_readers_are_asked_about_too(tmp_path: Path) -> None:
    channels = {"/orders/**": {"history": 10}}
    async with decided(tmp_path, rights=RIGHTS, channels=channels) as made:
        allow(made, "/orders/7")
        ada = await client(made)
        assert (await ada.reply("/orders/7", data=1))["successful"]
        reader = made.person()
        async with reader.http.get("/streams/orders/7", params={"offset": "-1"}) as response:
            assert response.status == 200, await response.text()
            assert b"1" in await response.read()
        async with reader.http.get("/streams/orders/8", params={"offset": "-1"}) as response:
            assert response.status == 403
            assert SUBSCRIBE_DENIED in await response.text()
        made.application.plan += [200, 500]
        async with reader.http.get("/streams/orders/7", params={"offset": "-1"}) as response:
            assert response.status == 503
            assert AWAY in await response.text()
        assert made.application.about_channels("subscribe") == ["/orders/7", "/orders/8"]


async def test_a_pattern_that_overlaps_is_asked_about_as_it_is(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/**")
        ada = await client(made)
        assert (await ada.reply("/meta/subscribe", subscription="/orders/**"))["successful"]
        assert (await ada.reply("/meta/subscribe", subscription="/**"))["error"].startswith("403:")
        assert made.application.about_channels("subscribe") == ["/orders/**", "/**"]


async def test_rules_that_ask_need_a_backend(tmp_path: Path) -> None:
    from holdfast.compose import CannotStart, serving
    from tests.web.people import keys, settings

    (tmp_path / "rights.toml").write_text(RIGHTS)
    given = settings(tmp_path, rights=tmp_path / "rights.toml", **keys(tmp_path))
    with pytest.raises(CannotStart, match=r"rule\.1: ask needs the setting backend"):
        async with serving(given):
            pass


async def test_figures_say_how_the_backend_answers(tmp_path: Path) -> None:
    async with decided(tmp_path, rights=RIGHTS) as made:
        allow(made, "/orders/7")
        ada = await client(made)
        assert (await ada.reply("/orders/7", data=1))["successful"]
        assert not (await ada.reply("/orders/8", data=1))["successful"]
        made.application.plan += [500]
        assert not (await ada.reply("/orders/9", data=1))["successful"]
        async with ada.http.get("/metrics") as response:
            lines = (await response.text()).splitlines()
        found = {line for line in lines if line.startswith("holdfast_backend_questions_total")}
        for action, outcome in (
            ("handshake", "allowed"),
            ("publish", "allowed"),
            ("publish", "refused"),
            ("publish", "failed"),
        ):
            name = f'holdfast_backend_questions_total{{action="{action}",outcome="{outcome}"}} 1.0'
            assert name in found
        assert "holdfast_backend_broken 0.0" in lines
