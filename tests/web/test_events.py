"""`GET /events`: pages and scripts read several channels as Server-Sent Events."""

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

from holdfast.login import extension, request_grants
from holdfast.web.streams import event_requests, feeds, reader_limits
from tests.unit.login.signing import token
from tests.web.people import Json, Person, ServerAndClients, keys, server_and_clients, until
from tests.web.test_publish_requests import metric, open_server, publish

pytestmark = pytest.mark.untraced

KEEPS: Json = {
    "/news/**": {"history": 100, "durable": True},
    "/rooms/**": {"history": 100, "durable": True},
    "/brief": {"history": 2},
}
RIGHTS = """
[[rule]]
who = ["*"]
may = ["all"]
channels = ["/news/**"]
"""
LONG_S = 30.0


class Event(NamedTuple):
    """What a page hears."""

    name: str
    id: str
    data: Any


class Page:
    """Reads a response as `EventSource` of a browser does."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.headers = response.headers
        self._content = response.content
        self.last_id = ""
        self.retry_ms = 0
        self.beats = 0
        self.is_over = False

    async def event(self) -> Event | None:
        """The next event; None at the end."""
        async with asyncio.timeout(LONG_S):
            while True:
                block = await self._content.readuntil(b"\n\n")
                if not block:
                    self.is_over = True
                    return None
                event = self._heard(block.decode())
                if event is not None:
                    return event

    def _heard(self, block: str) -> Event | None:
        name, data = "message", ""
        for line in block.splitlines():
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "id":
                self.last_id = value
            elif field == "data":
                data += value
            elif field == "retry":
                self.retry_ms = int(value)
        self.beats += not data
        return Event(name, self.last_id, orjson.loads(data)) if data else None

    async def heard(self) -> Any:
        """The channel and the data of the next event, which is a message."""
        event = await self.event()
        assert event is not None
        assert event.name == "message", event
        return event.data["channel"], event.data["data"]

    async def settled(self) -> str:
        """Wait until it has a place, and return it."""
        async with asyncio.timeout(LONG_S):
            while not self.last_id:
                event = self._heard((await self._content.readuntil(b"\n\n")).decode())
                assert event is None
        return self.last_id


@asynccontextmanager
async def page_of(person: Person, *channels: str, **asked: str) -> AsyncIterator[Page]:
    headers = {"Last-Event-ID": asked.pop("last")} if "last" in asked else {}
    params = [("channel", each) for each in channels] + list(asked.items())
    async with person.http.get("/events", params=params, headers=headers) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        yield Page(response)


async def tell(person: Person, channel: str, *data: object) -> None:
    status, results = await publish(person, *[{"channel": channel, "data": each} for each in data])
    assert status == 200, results


async def refusal(person: Person, query: str, **headers: str) -> tuple[int, str]:
    async with person.http.get(f"/events?{query}", headers=headers) as response:
        (refused,) = await response.json(content_type=None)
        return response.status, refused["error"]


async def readers_are(home: ServerAndClients, count: int) -> None:
    async def is_so() -> bool:
        return await metric(home.person(), "holdfast_stream_readers") == count

    await until(is_so)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[ServerAndClients]:
    async with open_server(tmp_path, channels=KEEPS) as home:
        yield home


async def test_a_page_hears_the_messages_of_all_its_channels(home: ServerAndClients) -> None:
    bob = home.person()
    await tell(bob, "/news/a", "before")
    async with page_of(home.person(), "/news/a", "/rooms/**") as page:
        await readers_are(home, 1)
        await tell(bob, "/rooms/x", 1)
        await tell(bob, "/news/b", "not asked for")
        await tell(bob, "/news/a", 2)
        assert [await page.heard() for _ in range(2)] == [("/rooms/x", 1), ("/news/a", 2)]
        assert 500 <= page.retry_ms <= 3000
        assert page.headers["X-Accel-Buffering"] == "no"
        assert page.headers["Cache-Control"] == "no-cache, no-store"


async def test_a_page_goes_on_where_it_stopped(home: ServerAndClients) -> None:
    ann, bob = home.person(), home.person()
    async with page_of(ann, "/news/a", after="-1") as page:
        await tell(bob, "/news/a", 1, 2)
        assert await page.heard() == ("/news/a", 1)
    await tell(bob, "/news/a", 3)
    # A browser repeats the address of its first request.
    async with page_of(ann, "/news/a", after="-1", last=page.last_id) as page:
        assert [await page.heard() for _ in range(2)] == [("/news/a", 2), ("/news/a", 3)]
    async with page_of(ann, "/news/a", after=page.last_id) as page:
        await tell(bob, "/news/a", 4)
        assert await page.heard() == ("/news/a", 4)


async def test_a_page_that_heard_nothing_yet_misses_nothing(home: ServerAndClients) -> None:
    ann = home.person()
    await tell(ann, "/news/a", "before")
    async with page_of(ann, "/news/a", "/rooms/x") as page:
        place = await page.settled()
    await tell(ann, "/rooms/x", "while it was away")
    async with page_of(ann, "/news/a", "/rooms/x", last=place) as page:
        assert await page.heard() == ("/rooms/x", "while it was away")


async def test_a_page_whose_channels_have_moved_goes_on_at_its_earliest_place(
    home: ServerAndClients,
) -> None:
    ann, bob = home.person(), home.person()
    async with page_of(ann, "/news/a", after="-1") as page:
        await tell(bob, "/news/a", 1, 2)
        await page.heard()
        _, _, earlier = page.last_id.partition("-")
        await page.heard()
    await tell(bob, "/news/a", 3)
    # As when three workers had its channels.
    async with page_of(ann, "/news/a", last=f"d-0123abcd~{page.last_id}~2-{earlier}") as page:
        assert [await page.heard() for _ in range(2)] == [("/news/a", 2), ("/news/a", 3)]


async def test_an_empty_last_id_is_none(home: ServerAndClients) -> None:
    ann = home.person()
    await tell(ann, "/news/a", 1)
    async with page_of(ann, "/news/a", after="-1", last="") as page:
        assert await page.heard() == ("/news/a", 1)


async def test_losses_are_told_by_an_event_and_what_is_left_follows(
    home: ServerAndClients,
) -> None:
    ann = home.person()
    async with page_of(ann, "/brief", "/news/a") as page:
        place = await page.settled()
    await tell(ann, "/brief", 1, 2, 3)
    await tell(ann, "/news/a", "whole")
    async with page_of(ann, "/brief", "/news/a", last=place) as page:
        lost = await page.event()
        assert lost is not None
        assert (lost.name, lost.data["channel"]) == ("lost", "/brief")
        assert lost.data["error"] == "410::history_lost"
        assert lost.data["lost"]["from"] == int(place.rpartition("_")[2])
        heard = [await page.heard() for _ in range(3)]
        assert heard == [("/brief", 2), ("/brief", 3), ("/news/a", "whole")]
    async with page_of(ann, "/brief", "/news/a", last=page.last_id) as page:
        await tell(ann, "/news/a", "next")
        assert await page.heard() == ("/news/a", "next")


@pytest.mark.parametrize("place", ["0-0123456789abcdef_1763865600000123", "future"])
async def test_a_place_of_another_store_is_a_loss_of_all_channels(
    home: ServerAndClients, place: str
) -> None:
    ann = home.person()
    await tell(ann, "/news/a", 1)
    if place == "future":
        async with page_of(ann, "/news/a") as page:
            epoch = (await page.settled()).rpartition("_")[0]
        place = f"{epoch}_{10**16}"
    async with page_of(ann, "/news/a", "/rooms/*", last=place) as page:
        lost = [await page.event() for _ in range(2)]
        said = [{"channel": each, "error": "410::history_lost"} for each in ("/news/a", "/rooms/*")]
        assert [each and each.data for each in lost] == said
        assert await page.heard() == ("/news/a", 1)


async def test_channels_that_keep_nothing_are_told_by_an_event(home: ServerAndClients) -> None:
    ann = home.person()
    async with page_of(ann, "/none", "/news/a") as page:
        missing = await page.event()
        assert missing is not None
        error = {"channel": "/none", "error": "404::history_missing"}
        assert (missing.name, missing.data) == ("missing", error)
        await tell(ann, "/news/a", 1)
        assert await page.heard() == ("/news/a", 1)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("", "400::channel_missing"),
        ("&".join(["channel=/a"] * 101), "400::channel_missing"),
        ("channel=/meta/connect", "404::history_missing"),
        ("channel=/sys/**", "404::history_missing"),
        ("channel=/news/a&after=x", "400::offset_invalid"),
        ("channel=/news/a&after=" + "0-a_1~" * 1000, "400::offset_invalid"),
        ("channel=/news/a&after=0-a_1~0-a_2", "400::offset_invalid"),
        (
            "channel=/news/a&after=0-a_1&after=0-a_1",
            "400:a parameter is given twice:offset_invalid",
        ),
        ("channel=/news/a&token=x", "403::credentials_in_url"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(
    home: ServerAndClients, query: str, error: str
) -> None:
    assert await refusal(home.person(), query) == (int(error[:3]), error)


async def test_what_passes_does_not_end_a_browsers_attempts(tmp_path: Path) -> None:
    async with (
        open_server(tmp_path, channels=KEEPS, max_readers=1) as home,
        page_of(home.person(), "/news/a") as first,
    ):
        await first.settled()
        async with page_of(home.person(), "/news/a") as page:
            refused = await page.event()
            assert refused is not None
            error = "503:max_readers:readers_exceeded"
            assert (refused.name, refused.data) == ("unavailable", {"error": error})
            assert page.retry_ms >= 1000
            assert await page.event() is None


async def test_a_quiet_stream_shows_that_it_lives_and_where_it_is(
    home: ServerAndClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = home.person()
    async with page_of(ann, "/news/a", "/rooms/**") as page:
        first = await page.settled()
    await tell(ann, "/news/b", "not asked for")
    monkeypatch.setattr(feeds, "BEAT_S", 0.05)
    monkeypatch.setattr(event_requests, "LASTS_S", 0.3)
    async with page_of(ann, "/news/a", "/rooms/**", last=first) as page:
        assert await page.event() is None
        assert page.beats >= 2
        assert page.last_id > first


async def test_all_readers_get_everything_in_order_whenever_they_come(
    home: ServerAndClients,
) -> None:
    last, bob = 200, home.person()

    async def publishes() -> None:
        for number in range(last + 1):
            await tell(bob, f"/rooms/{number % 3}", number)

    async def reads(late_s: float) -> list[int]:
        await asyncio.sleep(late_s)
        heard: list[int] = []
        async with page_of(bob, "/rooms/*", after="-1") as page:
            while not heard or heard[-1] < last:
                heard.append((await page.heard())[1])
        return heard

    publishing = asyncio.create_task(publishes())
    found = await asyncio.gather(*[reads(place * 0.01) for place in range(40)])
    await publishing
    assert all(each == [*range(last + 1)] for each in found)


async def test_a_server_that_stops_ends_all_streams(tmp_path: Path) -> None:
    async with open_server(tmp_path, channels=KEEPS) as home:
        ann = Person(home.url)
        opened = page_of(ann, "/news/a")
        page = await opened.__aenter__()
        await page.settled()
    async with ann.http:
        assert await page.event() is None
        await opened.__aexit__(None, None, None)


async def test_operators_see_who_reads_what(home: ServerAndClients) -> None:
    ann = home.person()
    async with page_of(ann, "/news/a", "/rooms/**") as page:
        await page.settled()
        await tell(ann, "/news/a", 1)
        await page.heard()
        secret = (home.home / "data" / "admin-token").read_text().strip()
        operator = {"Authorization": f"Bearer {secret}"}
        async with ann.http.get("/admin/api/v1/readers", headers=operator) as response:
            [reader] = (await response.json())["items"]
        assert (reader["live"], reader["channels"]) == ("events", ["/news/a", "/rooms/**"])
        assert reader["bytes"] > 0
        async with ann.http.get("/admin/api/v1/figures", headers=operator) as response:
            assert (await response.json())["readers"] == 1


# Logins


async def test_a_reader_needs_the_rights_for_all_its_channels(tmp_path: Path) -> None:
    given = keys(tmp_path, channels=KEEPS)
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        ann = home.person(Authorization=f"Bearer {token()}")
        async with page_of(ann, "/news/**") as page:
            await tell(ann, "/news/a", 1)
            assert await page.heard() == ("/news/a", 1)
        for query in ("channel=/news/a&channel=/rooms/x", "channel=/**"):
            error = "403:denied_by_rights:subscribe_denied"
            assert await refusal(ann, query) == (403, error)
        assert (await refusal(home.person(), "channel=/news/a"))[0] == 403


@pytest.mark.parametrize("change", ["revoked", "denied", "expired"])
async def test_a_stream_ends_soon_when_its_reader_may_no_longer_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    given = keys(tmp_path, channels=KEEPS)
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        ann = home.person(Authorization=f"Bearer {token()}")
        async with page_of(ann, "/news/a") as page:
            await page.settled()
            match change:
                case "revoked":
                    (home.home / "rights.toml").write_text(
                        RIGHTS + "[revoked]\nsubjects = ['ada']\n"
                    )
                case "denied":
                    (home.home / "rights.toml").write_text(RIGHTS.replace('"all"', '"publish"'))
                case _:
                    # In two hours, when her token has ended.
                    later = SimpleNamespace(time=lambda: time.time() + 7200)
                    monkeypatch.setattr(request_grants, "time", later)
                    monkeypatch.setattr(reader_limits, "time", later)
            end = await page.event()
            assert end is not None
            error = "403:denied_by_rights:subscribe_denied"
            assert (end.name, end.data) == ("end", {"error": error})
            assert await page.event() is None
        assert (await refusal(ann, "channel=/news/a"))[0] == 403


# Tickets


async def ticket_for(person: Person, *channels: str) -> tuple[int, Json]:
    params = [("channel", each) for each in channels]
    async with person.http.post("/streams/tickets", params=params) as response:
        found: Any = await response.json(content_type=None)
        return response.status, found if response.status == 200 else found[0]


@asynccontextmanager
async def with_login(home: Path) -> AsyncIterator[tuple[ServerAndClients, Person]]:
    """A server with a login, and one who has logged in."""
    given = keys(home, channels=KEEPS, login_leeway=0)
    async with server_and_clients(home, rights=RIGHTS, **given) as server:
        yield server, server.person(Authorization=f"Bearer {token()}")


async def test_a_ticket_lets_a_url_read_its_channels_and_nothing_else(tmp_path: Path) -> None:
    async with with_login(tmp_path) as (home, ann):
        status, made = await ticket_for(ann, "/news/*")
        assert (status, made["channels"]) == (200, ["/news/*"])
        assert 590_000 < made["expires"] - time.time() * 1000 <= 600_000
        page, ticket = home.person(), made["ticket"]
        async with page_of(page, "/news/a", ticket=ticket) as stream:
            await stream.settled()
            await tell(ann, "/news/a", 1)
            assert await stream.heard() == ("/news/a", 1)
        async with page.http.get(f"/streams/news/a?ticket={ticket}") as response:
            assert await response.json(content_type=None) == [1]
        for channel in ("/news/**", "/news/a/b"):
            error = "403:denied_by_rights:subscribe_denied"
            assert await refusal(page, f"channel={channel}&ticket={ticket}") == (403, error)
        with_ticket = home.person(Authorization=f"Bearer {ticket}")
        _, [refused] = await publish(with_ticket, {"channel": "/news/a", "data": 2})
        assert not refused["successful"]
        async with page.http.post(f"/streams/tickets?channel=/news/a&ticket={ticket}") as response:
            assert response.status == 403


async def test_a_ticket_is_for_channels_that_its_owner_may_read(tmp_path: Path) -> None:
    async with with_login(tmp_path) as (home, ann):
        status, refused = await ticket_for(ann, "/news/a", "/rooms/a")
        assert (status, refused["error"]) == (403, "403:denied_by_rights:subscribe_denied")
        assert (await ticket_for(ann))[0] == 400
        assert (await ticket_for(home.person(), "/news/a"))[0] == 403


async def test_a_ticket_that_was_changed_is_none(tmp_path: Path) -> None:
    async with with_login(tmp_path) as (home, ann):
        ticket = (await ticket_for(ann, "/news/a"))[1]["ticket"]
        head, claims, seal = ticket.split(".")
        for wrong in ("x", f"{head}.{claims}.", f"{head}.{claims}x.{seal}", token(), "x" * 7000):
            found = await refusal(home.person(), f"channel=/news/a&ticket={wrong}")
            assert found == (403, "403::handshake_denied")


@pytest.mark.parametrize("has_short_login", [False, True])
async def test_a_stream_ends_with_its_ticket_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_short_login: bool
) -> None:
    async with with_login(tmp_path) as (home, ann):
        if has_short_login:
            ann = home.person(Authorization=f"Bearer {token(exp=int(time.time()) + 3)}")
        else:
            monkeypatch.setattr(extension, "LONGEST_S", 3)
        ticket = (await ticket_for(ann, "/news/a"))[1]["ticket"]
        async with page_of(home.person(), "/news/a", ticket=ticket) as stream:
            place = await stream.settled()
            expired = await stream.event()
            assert expired is not None
            said = {"error": "403::ticket_expired"}
            assert (expired.name, expired.data) == ("expired", said)
            assert await stream.event() is None
        # A browser connects again with the same address.
        async with page_of(home.person(), "/news/a", ticket=ticket, last=place) as stream:
            expired = await stream.event()
            assert expired is not None
            assert (expired.name, expired.data) == ("expired", said)
        async with home.person().http.get(f"/streams/news/a?ticket={ticket}") as response:
            assert response.status == 403


async def test_a_subject_that_is_revoked_reads_nothing_by_a_ticket(tmp_path: Path) -> None:
    async with with_login(tmp_path) as (home, ann):
        ticket = (await ticket_for(ann, "/news/a"))[1]["ticket"]
        async with page_of(home.person(), "/news/a", ticket=ticket) as stream:
            await stream.settled()
            (home.home / "rights.toml").write_text(RIGHTS + "[revoked]\nsubjects = ['ada']\n")
            end = await stream.event()
            assert end is not None
            assert end.name == "end"


@pytest.mark.parametrize(
    "page",
    [
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Referer": "http://evil.test/page"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1:1"},
    ],
    ids=str,
)
async def test_the_cookie_of_a_login_is_of_no_use_to_pages_of_other_sites(
    tmp_path: Path, page: dict[str, str]
) -> None:
    given = keys(tmp_path, channels=KEEPS, login_cookie="login")
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        cookie = {"Cookie": f"login={token()}"}
        for own in ({}, {"Sec-Fetch-Site": "same-origin"}):
            status, made = await ticket_for(home.person(**cookie, **own), "/news/a")
            assert (status, made["channels"]) == (200, ["/news/a"])
        foreign = home.person(**cookie, **page)
        status, refused = await ticket_for(foreign, "/news/a")
        assert (status, refused["error"]) == (403, "403:allow_origin:origin_denied")
        assert await refusal(foreign, "channel=/news/a") == (403, "403:allow_origin:origin_denied")


async def test_without_a_login_there_are_no_tickets(home: ServerAndClients) -> None:
    status, refused = await ticket_for(home.person(), "/news/a")
    assert (status, refused["error"]) == (400, "400:no login is required:not_supported")
