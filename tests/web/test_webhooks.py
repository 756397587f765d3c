"""Webhooks: the server posts messages to URLs, and settles them by the answers."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.webhooks.local_connection import LocalConnection
from tests.web.people import Json, Person, ServerAndClients, keys, server_and_clients, until
from tests.web.test_publish_requests import open_server
from tests.web.webhook_receiver import WebhookReceiver

pytestmark = pytest.mark.untraced

SECRET = "whsec_" + b64encode(b"the secret that is in force now!").decode()
FORMER = "whsec_" + b64encode(b"the secret that was there before").decode()
KEEPS: Json = {"/orders/**": {"durable": True}}
SESSION = "/sessions/webhook%2Fshop/1"
RIGHTS = """
[[rule]]
who = ["*"]
may = ["publish"]
channels = ["/orders/**"]
"""


class Hooked(NamedTuple):
    """A server with a webhook, and the application that it calls."""

    home: ServerAndClients
    person: Person
    receiver: WebhookReceiver

    async def publish(self, *values: Any, channel: str = "/orders/new") -> None:
        body = BytesIO(orjson.dumps([{"channel": channel, "data": each} for each in values]))
        headers = {"Content-Type": "application/json"}
        async with self.person.http.post("/publish", data=body, headers=headers) as response:
            assert all(each["successful"] for each in await response.json())

    async def administrate(self, method: str, path: str, **body: Any) -> Any:
        token = (self.home.home / "data" / "admin-token").read_text().strip()
        async with self.person.http.request(
            method,
            f"/admin/api/v1{path}",
            json=body or None,
            headers={"Authorization": f"Bearer {token}"},
        ) as response:
            assert response.status < 400, await response.text()
            return await response.json() if response.status != 204 else None

    async def letters(self, count: int) -> list[Json]:
        """Wait for so many letters. Returns all, the oldest first."""
        found: list[Json] = []

        async def are_there() -> bool:
            found[:] = (await self.administrate("GET", "/dead-letters"))["items"]
            return len(found) >= count

        await until(are_there)
        return found[::-1]

    async def is_held(self) -> bool:
        return bool((await self.administrate("GET", "/sessions?held=true"))["items"])


def webhook(receiver: WebhookReceiver, given: Json | None) -> Json:
    usual = {"secret": SECRET, "allow_private": True, "delays": [20, 40], "url": receiver.url}
    what = given or {}
    return usual | ({} if "events" in what else {"channels": ["/orders/**"]}) | what


@asynccontextmanager
async def hooked(home: Path, given: Json | None = None, **settings: Any) -> AsyncIterator[Hooked]:
    async with WebhookReceiver() as receiver:
        more = {"webhooks": {"shop": webhook(receiver, given)}, "channels": KEEPS, **settings}
        async with open_server(home, **more) as made:
            yield Hooked(made, made.person(), receiver)


# What is posted


async def test_it_gets_what_is_published_as_standard_webhooks_say(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"former_secret": FORMER}) as shop:
        await shop.publish(1, {"pieces": 2}, "drei 🙂")
        calls = await shop.receiver.called(3)
        assert [each.data for each in calls] == [1, {"pieces": 2}, "drei 🙂"]
        first = calls[0]
        assert first.headers["Content-Type"] == "application/json"
        assert first.body["type"] == "message"
        assert first.body["data"]["channel"] == "/orders/new"
        assert first.body["data"]["id"] == first.id
        for secret in (SECRET, FORMER):
            Webhook(secret).verify(first.raw, {**first.headers})
        with pytest.raises(WebhookVerificationError):
            Webhook(SECRET).verify(first.raw + b" ", {**first.headers})


async def test_messages_wait_for_it_in_order_until_it_answers(tmp_path: Path) -> None:
    async with hooked(tmp_path) as shop:
        shop.receiver.plan += [500, 503]
        await shop.publish(1, 2)
        calls = await shop.receiver.called(4)
        assert [each.data for each in calls] == [1, 1, 1, 2]
        assert len({each.id for each in calls[:3]}) == 1
        assert calls[0].raw == calls[2].raw


async def test_after_the_last_attempt_a_letter_says_why_and_the_next_goes_on(
    tmp_path: Path,
) -> None:
    async with hooked(tmp_path) as shop:
        shop.receiver.plan += [500, 502, 503]
        await shop.publish("broken", "fine")
        calls = await shop.receiver.called(4)
        assert [each.data for each in calls] == ["broken", "broken", "broken", "fine"]
        [letter] = await shop.letters(1)
        assert letter["code"] == "user.webhook.unanswered"
        assert letter["receiver"] == "webhook/shop/1"
        assert "503 Service Unavailable: as planned" in letter["reason"]
        assert shop.receiver.url not in str(letter)


async def test_a_letter_can_be_replayed_and_has_the_same_id(tmp_path: Path) -> None:
    async with hooked(tmp_path) as shop:
        shop.receiver.plan += [422]
        await shop.publish("once")
        [letter] = await shop.letters(1)
        assert letter["code"] == "user.webhook.refused"
        assert len(shop.receiver.calls) == 1, "it was tried again"
        await shop.administrate(
            "POST", "/replays", filter={"code": "user.webhook.refused"}, options={}, dry_run=False
        )
        calls = await shop.receiver.called(2)
        assert calls[0].id == calls[1].id
        assert calls[1].data == "once"


@pytest.mark.parametrize("status", [301, 308, 400, 401, 404, 418])
async def test_what_it_refuses_is_a_letter_at_once(tmp_path: Path, status: int) -> None:
    async with hooked(tmp_path) as shop:

        async def refuse(_: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": shop.receiver.url})

        shop.receiver.plan.append(refuse)
        await shop.publish("no", "yes")
        calls = await shop.receiver.called(2)
        assert [each.data for each in calls] == ["no", "yes"]
        assert [each["code"] for each in await shop.letters(1)] == ["user.webhook.refused"]


async def test_gone_holds_the_queue_back_until_an_operator_resumes_it(tmp_path: Path) -> None:
    async with hooked(tmp_path) as shop:
        shop.receiver.plan += [410]
        await shop.publish("a", "b")
        await until(shop.is_held)
        await shop.publish("c")
        assert len(shop.receiver.calls) == 1
        await shop.administrate("DELETE", f"{SESSION}/hold")
        calls = await shop.receiver.called(4)
        assert [each.data for each in calls] == ["a", "a", "b", "c"]


@pytest.mark.parametrize(
    ("status", "after"), [(429, "1"), (503, "Fri, 31 Dec 1999 23:59:59 GMT"), (503, "soon")]
)
async def test_it_may_say_when_to_come_back(tmp_path: Path, status: int, after: str) -> None:
    async with hooked(tmp_path) as shop:
        heard: list[float] = []

        async def wait(_: web.Request) -> web.Response:
            heard.append(asyncio.get_running_loop().time())
            return web.Response(status=status, headers={"Retry-After": after})

        shop.receiver.plan.append(wait)
        await shop.publish("patience")
        await shop.receiver.called(2)
        waited_s = asyncio.get_running_loop().time() - heard[0]
        assert waited_s >= (1.0 if after == "1" else 0.02)


async def test_messages_wait_while_nobody_is_there(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"delays": [50] * 20}) as shop:
        port = shop.receiver.port
        await shop.receiver.__aexit__()
        await shop.publish(1, 2)
        await asyncio.sleep(0.2)
        async with WebhookReceiver(port) as back:
            calls = await back.called(2)
            assert [each.data for each in calls] == [1, 2]


async def test_an_answer_that_takes_too_long_is_none(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"timeout": 50, "delays": []}) as shop:

        async def sleep(_: web.Request) -> web.Response:
            await asyncio.sleep(5)
            return web.Response()

        shop.receiver.plan.append(sleep)
        await shop.publish("slow", "fast")
        await shop.receiver.called(2)
        [letter] = await shop.letters(1)
        assert "no answer within 0.05 s" in letter["reason"]


async def test_a_server_that_is_busy_does_not_call_it_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[Json] = []
    ask = LocalConnection.ask

    async def busy(connection: LocalConnection, message: Json) -> Any:
        if not refused and message.get("ext", {}).get("delivery", {}).get("verdicts"):
            refused.append(message)
            raise RequestRefused(ErrorReply.SERVER_BUSY)
        return await ask(connection, message)

    monkeypatch.setattr(LocalConnection, "ask", busy)
    async with hooked(tmp_path) as shop:
        await shop.publish("first")
        await shop.receiver.called(1)
        await shop.publish("second")
        assert [each.data for each in await shop.receiver.called(2)] == ["first", "second"]
    assert refused


async def test_a_call_may_take_longer_than_clients_may_be_silent(tmp_path: Path) -> None:
    async with hooked(tmp_path, max_interval=200, timeout=200) as shop:

        async def work(_: web.Request) -> web.Response:
            await asyncio.sleep(1.5)
            return web.Response()

        shop.receiver.plan.append(work)
        await shop.publish("long", "short")
        await shop.receiver.called(2)
        await asyncio.sleep(0.5)
        assert [each.data for each in shop.receiver.calls] == ["long", "short"]


async def test_large_messages_are_posted_whole(tmp_path: Path) -> None:
    async with hooked(tmp_path, max_message_size=4_000_000, max_request_size=8_000_000) as shop:
        text = "".join(map(chr, range(32, 127))) * 30_000
        await shop.publish(text, "small")
        assert [each.data for each in await shop.receiver.called(2)] == [text, "small"]


async def test_an_endless_answer_is_not_read(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"delays": []}) as shop:

        async def pour(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b"x" * 65536)

        shop.receiver.plan.append(pour)
        await shop.publish("a", "b")
        assert [each.data for each in await shop.receiver.called(2)] == ["a", "b"]


async def test_several_calls_are_made_at_a_time_if_the_settings_say_so(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"in_flight": 3}) as shop:
        at_once = asyncio.Barrier(3)

        async def meet(_: web.Request) -> web.Response:
            async with asyncio.timeout(20):
                await at_once.wait()
            return web.Response()

        # The first one leaves alone, so that the others wait together.
        await shop.publish("alone")
        await shop.receiver.called(1)
        shop.receiver.plan.extend([meet, meet, meet])
        await shop.publish(1, 2, 3)
        calls = await shop.receiver.called(4)
        assert {each.data for each in calls[1:]} == {1, 2, 3}


# Whose it is


@pytest.mark.parametrize("name", ["webhook/shop/1", "client/webhook/shop/1", "webhook/shop"])
async def test_no_client_can_be_a_webhook(tmp_path: Path, name: str) -> None:
    async with hooked(tmp_path) as shop:
        reply = await shop.home.person().handshake(name)
        assert not reply["successful"]
        assert reply["error"].startswith("400:")


async def test_nobody_can_address_a_webhook(tmp_path: Path) -> None:
    async with hooked(tmp_path) as shop:
        await shop.person.handshake()
        for name in ("webhook/shop", "webhook/shop/1"):
            reply = await shop.person.reply(
                "/service/ptp", data={"destinations": [{"name": name}], "content": "hello"}
            )
            assert not reply["successful"], name
        await shop.publish("end")
        assert [each.data for each in await shop.receiver.called(1)] == ["end"]


async def test_rights_and_logins_are_for_clients(tmp_path: Path) -> None:
    async with WebhookReceiver() as receiver:
        more: Json = {"webhooks": {"shop": webhook(receiver, None)}, "rights": RIGHTS}
        more |= {"max_inactivity": 300, "channels": KEEPS | {"/orders/new": {"presence": True}}}
        async with server_and_clients(tmp_path, **keys(tmp_path, **more)) as home:
            person = home.person()
            shop = Hooked(home, person, receiver)
            await asyncio.sleep(0.5)
            (tmp_path / "rights.toml").write_text(RIGHTS + "\n")
            from tests.unit.login.signing import token

            await person.handshake(token=token(sub="ada"))
            for number in range(2):
                await person.reply("/orders/new", data=number)
                await receiver.called(number + 1)
                await asyncio.sleep(0.7)
            assert [each.data for each in receiver.calls] == [0, 1]
            listed = await shop.administrate("GET", "/sessions?prefix=webhook")
            assert len(listed["items"]) == 1


async def test_it_answers_no_requests_and_is_not_present(tmp_path: Path) -> None:
    channels: Json = {"/orders/**": {"durable": True, "presence": True}}
    async with hooked(tmp_path, {"channels": ["/orders/new"]}, channels=channels) as shop:
        shop.person.wants = {"request": True}
        await shop.person.handshake()
        await shop.person.connect()
        asked = {"replyTo": f"{shop.person.ret}/4000001", "timeout": 60_000}
        heard = await shop.person.ask("/orders/new", data="?", ext=asked)
        heard += await shop.person.connect()
        assert [each["error"] for each in heard if each["channel"].startswith("/ret/")] == [
            "404:/orders/new:no_responders"
        ]
        bob = shop.home.person()
        await bob.handshake()
        heard = await bob.ask("/service/presence", data={"channel": "/orders/new"})
        while not (shown := [each["data"] for each in heard if "data" in each]):
            heard = await bob.connect()
        assert [each["count"] for each in shown] == [0]


async def test_it_gets_only_what_was_published(tmp_path: Path) -> None:
    async with hooked(tmp_path) as shop:
        await shop.publish("before")
        await shop.person.handshake()
        topic: Json = {"delivery": {"topic": {"destroyDelay": -1}}}
        assert (await shop.person.reply("/orders/old", data="in", ext=topic))["successful"]
        await shop.administrate("DELETE", "/topic?channel=/orders/old")
        await shop.publish("after")
        assert [each.data for each in await shop.receiver.called(3)] == ["before", "in", "after"]


# Events of the server


async def test_it_hears_of_letters_and_holdbacks(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"events": ["letters", "holdbacks"]}) as shop:
        bob = shop.home.person()
        await bob.handshake("bob/1")
        await bob.reply("/meta/subscribe", subscription="/orders/new")
        await shop.publish("bad")
        await bob.connect()
        [event, _] = await bob.connect()
        seq = event["ext"]["delivery"]["seq"]
        refusal = {"seq": seq, "errorCode": "user.clientCode", "message": "no"}
        await bob.connect(delivery={"verdicts": [refusal]})
        [told] = await shop.receiver.called(1)
        [letter] = await shop.letters(1)
        assert told.body["type"] == "letter"
        assert told.id == f"letter-{letter['id']}"
        assert told.body["data"]["errorCode"] == "user.clientCode"
        await shop.administrate("PUT", "/sessions/bob/1/hold", reason="lunch")
        await shop.administrate("DELETE", "/sessions/bob/1/hold")
        calls = await shop.receiver.called(3)
        assert [each.body["type"] for each in calls[1:]] == ["holdback", "holdback"]
        assert [each.body["data"]["held"] for each in calls[1:]] == [True, False]
        assert {each.body["data"]["session"] for each in calls[1:]} == {"client/bob/1"}
        assert calls[1].body["data"]["reason"] == "lunch (operator)"


# Changes of the settings


async def test_a_removed_webhook_keeps_its_queue_until_it_is_ended(tmp_path: Path) -> None:
    async with hooked(tmp_path) as shop:
        shop.receiver.plan += [410]
        await shop.publish("kept")
        await until(shop.is_held)
    async with open_server(tmp_path, channels=KEEPS) as made:
        shop = Hooked(made, made.person(), shop.receiver)
        await shop.publish("more")
        [listed] = (await shop.administrate("GET", "/sessions?prefix=webhook"))["items"]
        assert listed["waiting"] == 2, listed
        await shop.administrate("DELETE", SESSION)
        assert not (await shop.administrate("GET", "/sessions?prefix=webhook"))["items"]


async def test_it_gets_other_channels_when_the_settings_have_others(tmp_path: Path) -> None:
    async with hooked(tmp_path) as shop:
        await shop.publish("first")
        await shop.receiver.called(1)
    async with hooked(tmp_path, {"channels": ["/bills"]}) as shop:
        await shop.publish("not this")
        await shop.publish("this", channel="/bills")
        assert [each.data for each in await shop.receiver.called(1)] == ["this"]
