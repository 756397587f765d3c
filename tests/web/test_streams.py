"""`GET /streams/CHANNEL`: programs read the history of a channel without a session."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import aiohttp
import orjson
import pytest
from multidict import CIMultiDict

from holdfast.login import request_grants
from holdfast.web.streams import feeds, reading_requests
from tests.unit.login.signing import token
from tests.web.people import Json, Person, ServerAndClients, keys, server_and_clients, until
from tests.web.test_publish_requests import metric, open_server, publish

pytestmark = pytest.mark.untraced

KEEPS: Json = {"/news/**": {"history": 100, "durable": True}, "/brief": {"history": 2}}
PAGE = "https://page.example"
RIGHTS = """
[[rule]]
who = ["*"]
may = ["all"]
channels = ["/news/**"]
"""


class Read(NamedTuple):
    """A response."""

    status: int
    data: Any
    headers: Any

    @property
    def next(self) -> str:
        """Where to go on."""
        offset: str = self.headers["Stream-Next-Offset"]
        return offset


async def read(person: Person, channel: str = "/news/a", method: str = "GET", **asked: Any) -> Read:
    headers = asked.pop("headers", {})
    async with person.http.request(
        method, f"/streams{channel}", params=asked, headers=headers
    ) as response:
        has_body = response.status not in (204, 304) and method == "GET"
        data = await response.json(content_type=None) if has_body else None
        return Read(response.status, data, response.headers)


async def tell(person: Person, *data: object, channel: str = "/news/a") -> None:
    status, _ = await publish(person, *[{"channel": channel, "data": each} for each in data])
    assert status == 200


def error_of(found: Read) -> str:
    error: str = found.data[0]["error"]
    return error


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[ServerAndClients]:
    async with open_server(tmp_path, channels=KEEPS, timeout=300) as home:
        yield home


async def test_a_program_reads_what_is_kept_and_goes_on_where_it_stopped(
    home: ServerAndClients,
) -> None:
    ann = home.person()
    await tell(ann, 1, {"n": 2})
    first = await read(ann)
    assert (first.status, first.data) == (200, [1, {"n": 2}])
    assert first.headers["Stream-Up-To-Date"] == "true"
    assert first.headers["Content-Type"] == "application/json"
    await tell(ann, "more")
    second = await read(ann, offset=first.next)
    assert second.data == ["more"]
    assert second.next > first.next
    assert (await read(ann, offset=second.next)).data == []
    assert (await read(ann, offset="-1")).data == [1, {"n": 2}, "more"]


async def test_events_come_whole_if_they_are_asked_for(home: ServerAndClients) -> None:
    ann = home.person()
    await tell(ann, 1)
    assert (await read(ann, envelope="1")).data == [{"channel": "/news/a", "data": 1}]


async def test_an_empty_history_is_an_empty_array(home: ServerAndClients) -> None:
    found = await read(home.person())
    assert (found.status, found.data) == (200, [])


@pytest.mark.parametrize(
    ("channel", "detail"),
    [
        *((each, "") for each in ("/none", "/meta/connect", "/service/chat")),
        ("/news/", "one channel, without a slash at its end; several are read by /events"),
        *((each, "a pattern is read by /events") for each in ("/news/*", "/news/**")),
        *((each, "not the name of a channel") for each in ("/$%", "/")),
    ],
)
async def test_what_keeps_no_messages_is_unknown(
    home: ServerAndClients, channel: str, detail: str
) -> None:
    found = await read(home.person(), channel)
    assert (found.status, error_of(found)) == (404, f"404:{detail}:history_missing")
    assert found.headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("offset=", "400::offset_invalid"),
        ("offset=abc", "400::offset_invalid"),
        ("offset=-2", "400::offset_invalid"),
        ("offset=_1", "400::offset_invalid"),
        ("offset=a/b_1", "400::offset_invalid"),
        ("offset=a b_1", "400::offset_invalid"),
        ("offset=" + "9" * 300, "400::offset_invalid"),
        ("offset=-1&offset=-1", "400:a parameter is given twice:offset_invalid"),
        ("live=long-poll", "400:live needs an offset:offset_invalid"),
        ("live=websocket&offset=-1", "400:live is not long-poll or sse:request_malformed"),
        ("access_token=x", "403::credentials_in_url"),
        ("token=x", "403::credentials_in_url"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(
    home: ServerAndClients, query: str, error: str
) -> None:
    async with home.person().http.get(f"/streams/news/a?{query}") as response:
        (refused,) = await response.json(content_type=None)
        assert (response.status, refused["error"]) == (int(error[:3]), error)


async def test_an_offset_of_the_future_is_invalid(home: ServerAndClients) -> None:
    ann = home.person()
    epoch = (await read(ann)).next.rpartition("_")[0]
    found = await read(ann, offset=f"{epoch}_{10**16}")
    assert error_of(found) == "400::offset_invalid"


async def test_a_reader_whose_messages_have_left_is_told_what_is_lost_and_where_to_go_on(
    home: ServerAndClients,
) -> None:
    ann = home.person()
    await tell(ann, 1, channel="/brief")
    seen = (await read(ann, "/brief")).next
    await tell(ann, 2, 3, 4, channel="/brief")
    found = await read(ann, "/brief", offset=seen)
    (refused,) = found.data
    assert (found.status, refused["error"]) == (410, "410::history_lost")
    assert refused["lost"]["from"] == int(seen.rpartition("_")[2])
    assert refused["lost"]["from"] < refused["lost"]["to"]
    assert refused["next"] == found.next
    assert (await read(ann, "/brief", offset=refused["next"])).data == [3, 4]


async def test_an_offset_of_another_store_is_gone(home: ServerAndClients) -> None:
    found = await read(home.person(), offset="0123456789abcdef_1763865600000123")
    assert (found.status, found.data[0]["next"]) == (410, "-1")


async def test_a_head_and_now_say_where_the_history_ends(home: ServerAndClients) -> None:
    ann = home.person()
    await tell(ann, 1)
    end = (await read(ann)).next
    head, now = await read(ann, method="HEAD"), await read(ann, offset="now")
    assert (head.next, now.next, now.data) == (end, end, [])
    assert {each.headers["Cache-Control"] for each in (head, now)} == {"no-store"}
    # It has nothing to wait for.
    at_once = await read(ann, method="HEAD", offset=end, live="long-poll")
    assert (at_once.status, at_once.next) == (200, end)


# Waiting


async def test_a_reader_waits_until_there_is_a_message(tmp_path: Path) -> None:
    async with open_server(tmp_path, channels=KEEPS) as patient:
        ann, bob = patient.person(), patient.person()
        start = (await read(ann)).next
        waits = [
            asyncio.create_task(read(ann, offset=each, live="long-poll")) for each in (start, "now")
        ]

        async def are_waiting() -> bool:
            return await metric(bob, "holdfast_stream_readers") == 2

        await until(are_waiting)
        await tell(bob, "came")
        found = [await each for each in waits]
        assert [each.data for each in found] == [["came"], ["came"]]
        assert {each.headers["Cache-Control"] for each in found} == {"no-store"}

        async def has_none() -> bool:
            return await metric(bob, "holdfast_stream_readers") == 0

        await until(has_none)


async def test_a_reader_that_waited_in_vain_asks_again_from_the_same_place(
    home: ServerAndClients,
) -> None:
    ann = home.person()
    start = (await read(ann)).next
    first = await read(ann, offset=start, live="long-poll")
    assert (first.status, first.next) == (204, start)
    assert first.headers["Stream-Up-To-Date"] == "true"
    # So no cache repeats the first answer.
    cursor = first.headers["Stream-Cursor"]
    again = await read(ann, offset=start, live="long-poll", cursor=cursor)
    assert int(again.headers["Stream-Cursor"]) > int(cursor)
    in_vain = await read(ann, offset="now", live="long-poll")
    assert (in_vain.status, in_vain.next) == (204, start)


async def test_a_reader_that_closes_its_connection_no_longer_counts(tmp_path: Path) -> None:
    async with open_server(tmp_path, channels=KEEPS, max_readers=1) as home:
        ann, bob = home.person(), home.person()
        waits = asyncio.create_task(read(ann, offset="now", live="long-poll"))

        async def is_waiting() -> bool:
            return await metric(home.person(), "holdfast_stream_readers") == 1

        await until(is_waiting)
        one_more = await read(bob, offset="now", live="long-poll")
        assert error_of(one_more) == "503:max_readers:readers_exceeded"
        assert one_more.headers["Retry-After"] == "1"
        # One that does not wait is none of them.
        assert (await read(bob)).status == 200
        waits.cancel()
        next_one = asyncio.create_task(_read_patiently(bob))
        # The first one may count until the server finds its connection closed.
        await until(is_waiting)
        await tell(bob, "came")
        assert (await next_one).data == ["came"]


async def _read_patiently(person: Person) -> Read:
    while True:
        found = await read(person, offset="now", live="long-poll")
        if found.status != 503:
            return found
        await asyncio.sleep(0.05)


async def test_a_server_that_stops_answers_those_who_wait(tmp_path: Path) -> None:
    async with open_server(tmp_path, channels=KEEPS) as home:
        # The server stops before she leaves.
        ann = Person(home.url)
        waits = asyncio.create_task(read(ann, offset="now", live="long-poll"))

        async def is_waiting() -> bool:
            return await metric(home.person(), "holdfast_stream_readers") == 1

        await until(is_waiting)
    async with ann.http:
        assert (await waits).status == 204


async def test_offsets_survive_a_restart(tmp_path: Path) -> None:
    async with open_server(tmp_path, channels=KEEPS) as home:
        ann = home.person()
        await tell(ann, 1)
        first = await read(ann)
        await tell(ann, 2)
    async with open_server(tmp_path, channels=KEEPS) as home:
        ann = home.person()
        await tell(ann, 3)
        assert (await read(ann, offset=first.next)).data == [2, 3]


# Server-Sent Events


class Events:
    """What comes on an event stream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["X-Accel-Buffering"] == "no"
        self._content = response.content
        self.next = ""
        self.is_last = False

    async def block(self) -> bytes:
        """The next event or comment; empty at the end."""
        return await self._content.readuntil(b"\n\n")

    async def data(self) -> Any:
        """The messages of the next event, with the control event behind them."""
        event = await self.block()
        if event.startswith(b"event: data\n"):
            text = event.partition(b"\ndata:")[2]
            await self._control()
            return orjson.loads(text)
        self._heard(event)
        return None

    async def _control(self) -> None:
        self._heard(await self.block())

    def _heard(self, event: bytes) -> None:
        name, _, text = event.partition(b"\ndata:")
        assert name == b"event: control"
        control = orjson.loads(text)
        self.next, self.is_last = control["streamNextOffset"], control.get("upToDate", False)


@asynccontextmanager
async def events(person: Person, channel: str = "/news/a", **asked: str) -> AsyncIterator[Events]:
    params = {"live": "sse", "offset": "-1", **asked}
    async with person.http.get(f"/streams{channel}", params=params) as response:
        assert response.status == 200
        yield Events(response)


async def test_messages_come_as_events_with_the_offset_behind_them(home: ServerAndClients) -> None:
    ann, bob = home.person(), home.person()
    await tell(bob, 1, 2)
    async with events(ann) as stream:
        assert await stream.data() == [1, 2]
        assert stream.is_last
        await tell(bob, {"n": 3})
        assert await stream.data() == [{"n": 3}]
        behind = stream.next
        assert (await read(bob)).next == behind
    async with events(ann, offset="now") as stream:
        assert await stream.data() is None
        assert stream.next == behind
        await tell(bob, "new")
        assert await stream.data() == ["new"]


async def test_a_quiet_stream_shows_that_it_lives_and_ends_some_time(
    home: ServerAndClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "BEAT_S", 0.05)
    monkeypatch.setattr(feeds, "_RETRY_S", 0.0)
    monkeypatch.setattr(reading_requests, "LASTS_S", 0.2)
    async with events(home.person()) as stream:
        assert await stream.data() is None
        assert await stream.block() == b":\n\n"
        blocks = [await stream.block() for _ in range(10)]
        assert blocks[0] == b":\n\n"
        assert blocks[-1] == b""


async def test_a_stream_that_cannot_begin_has_the_status_of_the_error(
    home: ServerAndClients,
) -> None:
    ann = home.person()
    for channel, asked, status in (
        ("/none", {"offset": "-1"}, 404),
        ("/news/a", {"offset": "0123456789abcdef_1763865600000123"}, 410),
        ("/news/a", {}, 400),
    ):
        assert (await read(ann, channel, live="sse", **asked)).status == status


async def test_a_stream_ends_when_its_server_stops(tmp_path: Path) -> None:
    async with open_server(tmp_path, channels=KEEPS) as home:
        ann = Person(home.url)
        opened = events(ann)
        stream = await opened.__aenter__()
        assert await stream.data() is None
    async with ann.http:
        assert await stream.block() == b""
        await opened.__aexit__(None, None, None)


async def test_a_stream_ends_before_what_its_reader_may_no_longer_read(tmp_path: Path) -> None:
    given = keys(tmp_path, channels=KEEPS)
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        ann = home.person(Authorization=f"Bearer {token()}")
        bob = home.person(Authorization=f"Bearer {token(sub='bob')}")
        async with events(ann) as stream:
            assert await stream.data() is None
            (home.home / "rights.toml").write_text(RIGHTS + "[revoked]\nsubjects = ['ada']\n")

            async def is_revoked() -> bool:
                return (await read(ann)).status == 403

            await until(is_revoked)
            await tell(bob, "not for her")
            assert await stream.block() == b""


async def test_streams_count_as_readers_that_wait(tmp_path: Path) -> None:
    async with (
        open_server(tmp_path, channels=KEEPS, max_readers=1) as home,
        events(home.person()) as stream,
    ):
        assert await stream.data() is None
        found = await read(home.person(), live="sse", offset="-1")
        assert error_of(found) == "503:max_readers:readers_exceeded"


# Caches and pages


async def test_an_unchanged_history_is_not_sent_twice(home: ServerAndClients) -> None:
    ann = home.person()
    await tell(ann, 1)
    first = await read(ann)
    assert first.headers["Cache-Control"] == "public, no-cache"
    again = await read(ann, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.next) == (304, first.next)
    for known in ("*", "W/" + first.headers["ETag"], f'"x", {first.headers["ETag"]}'):
        assert (await read(ann, headers={"If-None-Match": known})).status == 304
    several = CIMultiDict([("If-None-Match", '"x"'), ("If-None-Match", first.headers["ETag"])])
    assert (await read(ann, headers=several)).status == 304
    other = f'"x{first.headers["ETag"]}x"'
    assert (await read(ann, headers={"If-None-Match": other})).status == 200
    await tell(ann, 2)
    changed = await read(ann, headers={"If-None-Match": first.headers["ETag"]})
    assert (changed.status, changed.data) == (200, [1, 2])
    other_form = await read(ann, envelope="1", headers={"If-None-Match": changed.headers["ETag"]})
    assert other_form.status == 200


async def test_a_full_part_may_be_reused_until_its_first_message_expires(
    home: ServerAndClients,
) -> None:
    ann = home.person()
    long = "x" * 200_000
    await tell(ann, long, long)
    part = await read(ann)
    assert ([len(each) for each in part.data], part.headers["Cache-Control"]) == (
        [200_000],
        "public, max-age=60",
    )
    assert "Stream-Up-To-Date" not in part.headers
    ext = {"delivery": {"expiration": {"lifeTime": 30_000}}}
    brief = {"channel": "/news/b", "data": long, "ext": ext}
    await publish(ann, brief, {"channel": "/news/b", "data": long})
    found = await read(ann, "/news/b")
    age = found.headers["Cache-Control"].removeprefix("public, max-age=")
    assert 0 < int(age) <= 30


async def test_responses_are_for_programs_and_pages_that_may_use_the_server(
    tmp_path: Path,
) -> None:
    async with open_server(tmp_path, channels=KEEPS, allow_origin=[PAGE]) as home:
        ann = home.person()
        found = await read(ann)
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        assert found.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Set-Cookie" not in found.headers
        assert found.headers["Vary"] == "Origin, Authorization, Cookie, Accept-Encoding"
        page = await read(ann, headers={"Origin": PAGE})
        assert page.headers["Access-Control-Allow-Origin"] == PAGE
        assert "Stream-Next-Offset" in page.headers["Access-Control-Expose-Headers"]
        assert page.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        foreign = await read(ann, headers={"Origin": "https://other.example"})
        assert (foreign.status, error_of(foreign)) == (403, "403:allow_origin:origin_denied")
        embedded = await read(ann, headers={"Sec-Fetch-Site": "cross-site"})
        assert embedded.status == 403
        asked = {"Origin": PAGE, "Access-Control-Request-Method": "GET"}
        async with ann.http.options("/streams/news/a", headers=asked) as response:
            allowed = response.headers["Access-Control-Allow-Headers"]
            assert allowed == "Authorization, If-None-Match, Last-Event-ID"


async def test_only_reading_is_possible(home: ServerAndClients) -> None:
    for method in ("POST", "PUT", "DELETE"):
        async with home.person().http.request(method, "/streams/news/a") as response:
            assert response.status == 405
            assert response.headers["Allow"] == "GET,HEAD,OPTIONS"


async def test_an_operator_may_switch_it_off(tmp_path: Path) -> None:
    async with (
        open_server(tmp_path, channels=KEEPS, streams=False) as home,
        home.person().http.get("/streams/news/a") as response,
    ):
        assert response.status == 404


# Logins and limits


async def test_a_reader_needs_a_login_and_the_right_to_replay(tmp_path: Path) -> None:
    given = keys(tmp_path, channels={"/**": {"history": 5}}, login_cookie="jwt")
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        ann = home.person(Authorization=f"Bearer {token()}")
        await tell(ann, "secret")
        found = await read(ann)
        assert (found.data, found.headers["Cache-Control"]) == (["secret"], "private, no-cache")
        with_cookie = await read(home.person(Cookie=f"jwt={token()}"))
        assert with_cookie.data == ["secret"]
        stranger = await read(home.person())
        assert (stranger.status, error_of(stranger)) == (403, "403:no_credentials:handshake_denied")
        wrong = await read(home.person(Authorization="Bearer x"))
        assert error_of(wrong) == "403::handshake_denied"
        # Whether there is anything, too, is for those who have the right.
        for channel in ("/other", "/others"):
            denied = await read(ann, channel)
            assert error_of(denied) == "403:denied_by_rights:subscribe_denied"
        (home.home / "rights.toml").write_text(RIGHTS.replace('"all"', '"subscribe"'))

        async def is_denied() -> bool:
            found = await read(ann)
            return found.status == 403 and error_of(found) == "403:denied_by_rights:replay_denied"

        await until(is_denied)


async def test_a_reader_that_loses_its_right_while_it_waits_gets_nothing(tmp_path: Path) -> None:
    given = keys(tmp_path, channels=KEEPS)
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        ann = home.person(Authorization=f"Bearer {token()}")
        bob = home.person(Authorization=f"Bearer {token(sub='bob')}")
        revoked = "[revoked]\nsubjects = ['ada']\n"
        waits = asyncio.create_task(read(ann, offset="now", live="long-poll"))

        async def is_waiting() -> bool:
            return await metric(home.person(), "holdfast_stream_readers") == 1

        await until(is_waiting)
        (home.home / "rights.toml").write_text(RIGHTS + revoked)

        async def is_revoked() -> bool:
            return (await read(ann)).status == 403

        await until(is_revoked)
        await tell(bob, "not for her")
        assert error_of(await waits) == "403:denied_by_rights:subscribe_denied"


async def test_a_reader_whose_login_ends_while_it_waits_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server_and_clients(tmp_path, channels=KEEPS) as home:
        ann = home.person(Authorization=f"Bearer {token()}")
        waits = asyncio.create_task(read(ann, offset="now", live="long-poll"))

        async def is_waiting() -> bool:
            return await metric(home.person(), "holdfast_stream_readers") == 1

        await until(is_waiting)
        # In two hours, when her token has ended.
        later = SimpleNamespace(time=lambda: time.time() + 7200)
        monkeypatch.setattr(request_grants, "time", later)
        bob = home.person(Authorization=f"Bearer {token(sub='bob', exp=int(time.time()) + 9000)}")
        await tell(bob, "not for her")
        assert error_of(await waits) == "403:denied_by_rights:subscribe_denied"


async def test_what_an_address_reads_counts_against_its_budget(tmp_path: Path) -> None:
    given: Json = {"channels": KEEPS, "trusted_proxies": ["127.0.0.1"], "budget_bytes": 100_000}
    async with open_server(tmp_path, **given) as home:
        here, far = home.person(), home.person(**{"X-Forwarded-For": "203.0.113.7"})
        await tell(here, "x" * 200_000)
        statuses = {(await read(far)).status for _ in range(10)}
        assert statuses == {200, 429}
        assert (await read(here)).status == 200
