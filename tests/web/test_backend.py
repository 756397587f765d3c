"""The backend decides: an application is asked who a client is."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from aiohttp import web

from holdfast.compose import serving
from tests.slowness import times_slower
from tests.unit.login.signing import token
from tests.web.backend_application import BackendApplication
from tests.web.people import Json, Person, ServerAndClients, keys, settings, until

pytestmark = pytest.mark.untraced

DENIED = "403:denied_by_backend:handshake_denied"
AWAY = "503::backend_unavailable"


class Decided(NamedTuple):
    """A server, and the application that decides about its clients."""

    home: ServerAndClients
    application: BackendApplication

    def person(self, cookie: str = "of-ada", **headers: str) -> Person:
        return self.home.person(None, Cookie=f"theme=dark; sessionid={cookie}", **headers)


@asynccontextmanager
async def decided(home: Path, backend: Json | None = None, **given: Any) -> AsyncIterator[Decided]:
    async with BackendApplication() as application:
        if "rights" in given:
            (home / "rights.toml").write_text(given["rights"])
            given["rights"] = home / "rights.toml"
        given["backend"] = application.settings(**(backend or {}))
        async with serving(settings(home, **given)) as url:
            made = ServerAndClients(url, home)
            try:
                yield Decided(made, application)
            finally:
                for person in made.people:
                    await person.http.close()


async def test_operators_see_that_it_does_not_answer(tmp_path: Path) -> None:
    async with decided(tmp_path) as (home, application):
        token = (tmp_path / "data" / "admin-token").read_text().strip()
        ada = Decided(home, application).person()
        application.plan += [503] * 5
        for _ in range(5):
            assert (await ada.handshake())["error"] == AWAY
        headers = {"Authorization": f"Bearer {token}"}
        async with ada.http.get("/admin/api/v1/now", headers=headers) as response:
            now = await response.json()
        [broken] = now["backend"]["items"]
        assert (broken["state"], broken["open"], broken["waiting"]) == ("broken", 0, 0)
        assert "503" in broken["failure"]
        assert broken["failed"] >= broken["since"] > 0
        assert now["sentence"].startswith("the backend has not answered since ")


async def test_the_application_says_who_a_client_is(tmp_path: Path) -> None:
    async with decided(tmp_path) as (home, application):
        ada = Decided(home, application).person("of-ada", **{"X-Other": "secret"})
        reply = await ada.handshake("ada/1")
        assert reply["successful"], reply
        assert reply["ext"]["authentication"] == {"subject": "ada", "method": "backend"}
        [asked] = application.asked
        assert asked.action == "handshake"
        assert asked.data == {"address": "127.0.0.1"}
        assert asked.headers["Cookie"] == "sessionid=of-ada"
        assert "X-Other" not in asked.headers
        assert (await ada.connect())[-1]["successful"]
        assert len(application.asked) == 1, "it is asked at the handshake alone"


async def test_a_client_has_the_names_of_its_own_subject_only(tmp_path: Path) -> None:
    async with decided(tmp_path) as made:
        ada = made.person()
        assert (await ada.handshake("bob/1"))["error"].startswith("403:")
        assert (await ada.handshake("ada/1"))["successful"]
        mine = await made.person().handshake("ada/2", subject="bob", user="bob")
        assert mine["ext"]["authentication"]["subject"] == "ada"


async def test_a_client_may_give_something_else_than_a_cookie(tmp_path: Path) -> None:
    async with decided(tmp_path) as made:
        bob = made.home.person()
        made.application.users["once-7"] = "bob"
        reply = await bob.handshake(ticket="once-7")
        assert reply["ext"]["authentication"]["subject"] == "bob"
        [asked] = made.application.asked
        assert asked.data["authentication"] == {"ticket": "once-7"}
        assert "Cookie" not in asked.headers


async def test_named_headers_are_passed_on_and_no_others(tmp_path: Path) -> None:
    async with decided(tmp_path, {"headers": ["X-Api-Key"]}) as made:
        headers = {"x-api-key": "k1", "Authorization": "Bearer x", "Webhook-Id": "mine"}
        await made.person(**headers).handshake()
        [asked] = made.application.asked
        assert asked.headers["X-Api-Key"] == "k1"
        assert "Authorization" not in asked.headers
        assert asked.headers["webhook-id"].startswith("ask_")


async def test_a_client_that_shows_nothing_is_refused_without_a_question(tmp_path: Path) -> None:
    async with decided(tmp_path) as made:
        reply = await made.home.person().handshake()
        assert reply["error"] == "403:no_credentials:handshake_denied"
        assert not made.application.asked


async def test_a_client_that_shows_nothing_may_be_anonymous(tmp_path: Path) -> None:
    async with decided(tmp_path, login_anonymous=True) as made:
        assert (await made.home.person().handshake())["successful"]
        assert not made.application.asked
        # One that shows something is what the application says.
        assert (await made.person("stale").handshake())["error"] == DENIED


async def test_a_refusal_has_the_text_of_the_application(tmp_path: Path) -> None:
    async with decided(tmp_path) as made:
        reply = await made.person("unknown").handshake()
        assert reply["error"] == DENIED
        assert reply["ext"] == {"backend": {"text": "Please sign in"}}
        assert reply["advice"]["reconnect"] == "none"


async def test_texts_of_refusals_are_short_and_printable(tmp_path: Path) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.json_response({"detail": "a\nb\u202e" + "c" * 1000}, status=401)

    async with decided(tmp_path) as made:
        made.application.plan += [refuse]
        text = (await made.person().handshake())["ext"]["backend"]["text"]
        assert text.startswith("a b c")
        assert len(text) <= 200


async def slow(_: web.Request) -> web.Response:
    await asyncio.sleep(2)
    return web.json_response({"subject": "ada"})


async def huge(_: web.Request) -> web.Response:
    return web.json_response({"subject": "ada", "groups": ["x" * 70_000]})


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(1000):
        await response.write(b" ")
        await asyncio.sleep(0.1)
    return response


async def broken(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def torn(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b'{"subject": "ada"}')
    assert request.transport is not None
    request.transport.close()
    return response


def said(body: Any, status: int = 200) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def say(_: web.Request) -> web.Response:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return web.Response(body=data, status=status)

    return say


UNCLEAR = {
    **{str(status): said({"subject": "ada"}, status) for status in (201, 204, 400, 404, 418, 500)},
    **{f"redirect {status}": said({"subject": "ada"}, status) for status in (301, 302, 307)},
    **{"502": said(b"", 502), "503": said(b"", 503), "504": said(b"", 504)},
    **{"huge": huge, "broken": broken, "torn": torn},
    "no JSON": said(b"<html>ada</html>"),
    "no UTF-8": said(b'{"subject": "\xff\xfe"}'),
    "nothing": said(b""),
    "a list": said(["ada"]),
    "a text": said("ada"),
    "null": said(None),
    "deep": said(b"[" * 60_000),
    "without a subject": said({}),
    "a number": said({"subject": 7}),
    "an empty subject": said({"subject": ""}),
    "a long subject": said({"subject": "a" * 64}),
    "everybody": said({"subject": "*"}),
    "anonymous": said({"subject": "anonymous"}),
    "a name": said({"subject": "ada/1"}),
    "a webhook": said({"subject": "webhook/shop"}),
    "a group": said({"subject": "@staff"}),
    "two lines": said({"subject": "ada\n"}),
    "misspelt": said({"subject": "ada", "expire_in": 60}),
    "no time": said({"subject": "ada", "expires_in": "60"}),
    "an infinite time": said(b'{"subject": "ada", "expires_in": 1e999}'),
    "a past time": said({"subject": "ada", "expires_in": -1}),
    "too long a time": said({"subject": "ada", "expires_in": 1e12}),
    "true": said({"subject": "ada", "expires_in": True}),
    "no groups": said({"subject": "ada", "groups": "staff"}),
    "no rights": said({"subject": "ada", "rights": {"may": ["all"]}}),
    "an unknown right": said({"subject": "ada", "rights": [{"may": ["fly"], "channels": ["/a"]}]}),
    "no channel": said({"subject": "ada", "rights": [{"may": ["all"], "channels": ["a"]}]}),
    "a question": said({"subject": "ada", "rights": [{"ask": ["publish"], "channels": ["/a"]}]}),
    "maybe": said({"subject": "ada", "allow": "yes"}),
}


async def test_what_is_no_clear_answer_lets_nobody_in(tmp_path: Path) -> None:
    async with decided(tmp_path) as made:
        for name, answer in UNCLEAR.items():
            made.application.plan += [answer]
            reply = await made.person().handshake()
            assert reply["error"] == AWAY, name
            assert "ext" not in reply, name
            assert reply["advice"]["reconnect"] == "handshake", name
            assert reply["advice"]["interval"] >= 1000, name
            # One clear answer in between: the application counts as there.
            assert (await made.person("of-bob").handshake())["successful"], name


@pytest.mark.parametrize("answer", [slow, endless])
async def test_an_answer_that_takes_too_long_lets_nobody_in(
    tmp_path: Path, answer: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> None:
    async with decided(tmp_path, {"timeout": 300}) as made:
        made.application.plan += [answer]
        began_s = time.monotonic()
        assert (await made.person().handshake())["error"] == AWAY
        assert 0.2 < time.monotonic() - began_s < 10


async def test_no_redirect_is_followed(tmp_path: Path) -> None:
    async def elsewhere(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": str(request.url)})

    async with decided(tmp_path) as made:
        made.application.plan += [elsewhere]
        assert (await made.person().handshake())["error"] == AWAY
        assert len(made.application.asked) == 1


async def test_the_server_does_not_ask_itself(tmp_path: Path) -> None:
    async with decided(tmp_path, {"allow_private": False, "url": "https://127.0.0.1/"}) as made:
        assert (await made.person().handshake())["error"] == AWAY


async def test_groups_and_rights_of_an_answer_apply(tmp_path: Path) -> None:
    rights = """
    [[rule]]
    who = ["@staff"]
    may = ["subscribe", "create"]
    channels = ["/staff"]

    [[rule]]
    who = ["*"]
    may_not = ["subscribe"]
    channels = ["/never"]
    """
    more = [{"may": ["subscribe", "create"], "channels": ["/{subject}/**", "/never"]}]
    async with decided(tmp_path, rights=rights) as made:
        made.application.about["ada"] = {"groups": ["staff"], "rights": more}
        ada, bob = made.person(), made.person("of-bob")
        await ada.handshake()
        await bob.handshake()
        allowed = {
            channel: (await ada.reply("/meta/subscribe", subscription=channel))["successful"]
            for channel in ("/staff", "/ada/x", "/bob/x", "/never")
        }
        assert allowed == {"/staff": True, "/ada/x": True, "/bob/x": False, "/never": False}
        assert not (await bob.reply("/meta/subscribe", subscription="/staff"))["successful"]


async def test_without_a_file_rights_of_an_answer_are_all_that_a_client_has(tmp_path: Path) -> None:
    async with decided(tmp_path) as made:
        ada, bob = made.person(), made.person("of-bob")
        may = ["subscribe", "create"]
        made.application.about["ada"] = {"rights": [{"may": may, "channels": ["/a"]}]}
        await ada.handshake()
        await bob.handshake()
        assert (await ada.reply("/meta/subscribe", subscription="/a"))["successful"]
        assert not (await ada.reply("/meta/subscribe", subscription="/b"))["successful"]
        assert (await bob.reply("/meta/subscribe", subscription="/b"))["successful"]
        made.application.about["ada"] = {"rights": []}
        await ada.handshake()
        assert not (await ada.reply("/meta/subscribe", subscription="/a"))["successful"]


async def test_tokens_go_on_working_beside_it(tmp_path: Path) -> None:
    async with decided(tmp_path, **keys(tmp_path)) as made:
        carol = made.home.person()
        reply = await carol.handshake(token=token(sub="carol"))
        assert reply["ext"]["authentication"]["method"] == "token"
        # What is given as a token is a token: the application is not asked about a wrong one.
        assert (await made.person().handshake(token="a.b.c"))["error"] == "403::handshake_denied"
        assert not made.application.asked
        assert (await made.person().handshake())["ext"]["authentication"]["method"] == "backend"


async def test_a_login_ends_when_the_application_says_so(tmp_path: Path) -> None:
    async with decided(tmp_path, login_warning=0) as made:
        made.application.about["ada"] = {"expires_in": 1.5}
        ada = made.person()
        reply = await ada.handshake()
        left_s = reply["ext"]["authentication"]["expires"] / 1000 - time.time()
        assert 0 < left_s <= 1.5
        await until(ada.is_out)
        late_s = time.time() - reply["ext"]["authentication"]["expires"] / 1000
        assert -0.1 < late_s < 1.5 * times_slower()


async def test_revoked_subjects_are_refused_whatever_it_says(tmp_path: Path) -> None:
    async with decided(tmp_path, rights='[revoked]\nsubjects = ["ada"]\n') as made:
        assert (await made.person().handshake())["error"] == "403::handshake_denied"
        assert (await made.person("of-bob").handshake())["successful"]


async def test_a_message_with_credentials_by_callback_polling_is_not_asked_about(
    tmp_path: Path,
) -> None:
    message = orjson.dumps(
        [
            {
                "channel": "/meta/handshake",
                "supportedConnectionTypes": ["callback-polling"],
                "ext": {"authentication": {"ticket": "of-ada"}},
            }
        ]
    ).decode()
    async with decided(tmp_path, transports=["callback-polling"]) as made:
        person = made.home.person(None, Referer=f"{made.home.url}/")
        async with person.http.get("/cometd", params={"message": message, "jsonp": "f"}) as got:
            assert "credentials_in_url" in await got.text()
        assert not made.application.asked


async def test_an_application_that_is_away_is_asked_seldom(tmp_path: Path) -> None:
    async with decided(tmp_path, {"timeout": 100}) as made:
        made.application.plan += [503] * 100
        for _ in range(12):
            assert (await made.person().handshake())["error"] == AWAY
        assert len(made.application.asked) == 5
        made.application.plan.clear()
        # After a pause, one question finds out that it is there again.
        person = made.person()

        async def is_in() -> bool:
            return bool((await person.handshake())["successful"])

        await until(is_in)
        assert len(made.application.asked) == 6


async def test_what_a_client_gives_may_not_be_too_deep(tmp_path: Path) -> None:
    async with decided(tmp_path) as made:
        outcomes = set()
        for depth in range(250, 256):
            ticket: Any = "of-ada"
            for _ in range(depth):
                ticket = [ticket]
            outcomes.add((await made.home.person().handshake(ticket=ticket))["error"])
        assert "403::handshake_denied" in outcomes
        assert "500::server_fault" not in outcomes


async def test_many_ask_at_the_same_time_but_not_too_many(tmp_path: Path) -> None:
    async with decided(tmp_path, handshake_rate=10_000) as made:
        made.application.delay_s = 0.2
        people = [made.person() for _ in range(100)]
        replies = await asyncio.gather(*(each.handshake() for each in people))
        assert all(each["successful"] for each in replies)
        assert 1 < made.application.most_open <= 64
