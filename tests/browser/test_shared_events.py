"""Tabs with `static/js/events.js` share one connection, and each hears its channels once."""

import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.browser.conftest import OpenPage
from tests.browser.test_events import CHANNELS, ELSEWHERE, KEPT, RIGHTS, Books
from tests.clients.mortal_server import MortalServer
from tests.unit.login.signing import SECRET, token
from tests.web.stream_reader import check

PLAIN, ROOM, DESK = CHANNELS
# The page has the login.
PUBLISH = """async (channel) => (await fetch("/publish", {
    method: "POST",
    body: JSON.stringify({channel, data: "still here"}),
})).ok"""
NO_WORKERS = "delete window.SharedWorker"


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[MortalServer]:
    settings = {"data": str(tmp_path), "channels": {"/counted/**": KEPT}}
    mortal = MortalServer({**settings, "allow_origin": [ELSEWHERE]})
    yield mortal
    mortal.stop()


def share(
    page: Page, mortal: MortalServer, channel: str, after: str = "now", query: str = ""
) -> None:
    page.evaluate("(asked) => share(...asked)", [mortal.alive.url, channel, after, query])


def heard(page: Page, channel: str) -> list[Any]:
    """What a page hears as one that has asked for this channel or pattern."""
    return [said for asked, *said in page.evaluate("heard") if asked == channel]


def numbers(page: Page, asked: str, channel: str) -> list[int]:
    said = [each[0] for each in heard(page, asked) if len(each) == 1]
    return [each["data"] for each in said if each["channel"] == channel]


def wait_for(page: Page, asked: str, channel: str, data: object) -> None:
    page.wait_for_function(
        """([asked, channel, data]) => heard.some(([by, said]) =>
            by === asked && said.channel === channel && said.data === data)""",
        arg=[asked, channel, data],
    )


def check_heard(page: Page, books: Books, asked: str, *channels: str, begins: int = 0) -> None:
    """Check that each number came once and in order, from the first one on that had to."""
    for channel in channels:
        accepted = [each for each in books.accepted[channel] if each > begins]
        wait_for(page, asked, channel, accepted[-1])
        found = numbers(page, asked, channel)
        check(accepted, found)
        assert min(found) > begins


def test_tabs_with_different_channels_share_one_connection_through_restarts(
    mortal: MortalServer, open_page: OpenPage
) -> None:
    one, other = (open_page(mortal.alive.url, "shared.html") for _ in range(2))
    books = Books(lambda: mortal.alive)
    books.publish(5)
    share(one, mortal, PLAIN)
    share(other, mortal, "/counted/rooms/**", "-1")
    mortal.wait_for_readers(1)
    begins = books.last
    for happens in (mortal.stop_and_start, mortal.kill_and_start):
        with ThreadPoolExecutor() as threads:
            publishing = threads.submit(books.publish, 20)
            happens()
            publishing.result()
        mortal.wait_for_readers(1)
    check_heard(one, books, PLAIN, PLAIN, begins=begins)
    check_heard(other, books, "/counted/rooms/**", ROOM, DESK)
    # The tab hears what it has asked for, and nothing else.
    assert {said["channel"] for said, *_ in heard(one, PLAIN)} == {PLAIN}


def test_a_channel_begins_at_its_own_place_while_others_go_on(
    mortal: MortalServer, open_page: OpenPage
) -> None:
    page, late = (open_page(mortal.alive.url, "shared.html") for _ in range(2))
    books = Books(lambda: mortal.alive)
    share(page, mortal, PLAIN, "-1")
    books.publish(50)
    with ThreadPoolExecutor() as threads:
        publishing = threads.submit(books.publish, 300)
        share(page, mortal, ROOM, "-1")
        share(late, mortal, PLAIN, "-1")
        share(page, mortal, "/counted/rooms/*/desk", "-1")
        share(late, mortal, "/counted/*", "-1")
        share(late, mortal, "/counted/**", "-1")
        publishing.result()
    check_heard(page, books, PLAIN, PLAIN)
    check_heard(page, books, ROOM, ROOM)
    check_heard(late, books, PLAIN, PLAIN)
    check_heard(late, books, "/counted/*", PLAIN)
    check_heard(late, books, "/counted/**", *CHANNELS)
    mortal.wait_for_readers(1)


@pytest.mark.parametrize("site", ["", ELSEWHERE], ids=["here", "elsewhere"])
def test_a_page_without_shared_workers_reads_by_itself(
    site: str, mortal: MortalServer, profile: BrowserContext, open_page: OpenPage
) -> None:
    if not site:
        profile.add_init_script(NO_WORKERS)
    # A page of another site cannot share a worker of this one.
    page, books = open_page(site or mortal.alive.url, "shared.html"), Books(lambda: mortal.alive)
    share(page, mortal, PLAIN, "-1")
    share(page, mortal, ROOM, "-1")
    books.publish(10)
    mortal.stop_and_start()
    books.publish(10)
    check_heard(page, books, PLAIN, PLAIN)
    check_heard(page, books, ROOM, ROOM)
    mortal.wait_for_readers(1)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[MortalServer]:
    """A server with a login, whose file of rights is in `tmp_path`."""
    key, rights = tmp_path / "key", tmp_path / "rights.toml"
    key.write_bytes(SECRET)
    rights.write_text(RIGHTS)
    login = {"login_keys": str(key), "login_cookie": "login", "rights": str(rights)}
    channels = {"/counted/**": KEPT}
    mortal = MortalServer(
        {**login, "login_leeway": 0, "allow_origin": [ELSEWHERE], "channels": channels}
    )
    yield mortal
    mortal.stop()


def test_a_listener_that_loses_its_rights_ends_alone(
    guarded: MortalServer, tmp_path: Path, open_page: OpenPage
) -> None:
    page = open_page(guarded.alive.url, "shared.html")
    page.context.add_cookies([{"name": "login", "value": token(), "url": guarded.alive.url}])
    share(page, guarded, PLAIN)
    share(page, guarded, ROOM)
    guarded.wait_for_readers(1)
    (tmp_path / "rights.toml").write_text(RIGHTS.replace("/counted/**", PLAIN))
    page.wait_for_function("heard.length === 1")
    assert heard(page, ROOM) == [["end", {"error": "403:denied_by_rights:subscribe_denied"}]]
    guarded.wait_for_readers(1)
    assert page.evaluate(PUBLISH, PLAIN)
    wait_for(page, PLAIN, PLAIN, "still here")


def test_a_page_of_another_site_learns_that_its_ticket_has_ended(
    guarded: MortalServer, open_page: OpenPage
) -> None:
    # That takes time, which a ticket of some seconds may not have.
    page = open_page(ELSEWHERE, "shared.html")
    asked = f"{guarded.alive.url}/streams/tickets?channel={PLAIN}"
    login = {"Authorization": f"Bearer {token(exp=int(time.time()) + 5)}"}
    request = urllib.request.Request(asked, headers=login, method="POST")
    with urllib.request.urlopen(request, timeout=60) as response:
        ticket = json.load(response)["ticket"]
    share(page, guarded, PLAIN, "-1", f"?ticket={ticket}")
    guarded.wait_for_readers(1)
    # It ends with the login by which it was got.
    page.wait_for_function("heard.length > 0")
    [[name, said]] = heard(page, PLAIN)
    assert name == "expired"
    assert list(said) == ["error"]
    guarded.wait_for_readers(0)


def test_the_connection_ends_with_the_last_tab(mortal: MortalServer, open_page: OpenPage) -> None:
    one, other = (open_page(mortal.alive.url, "shared.html") for _ in range(2))
    for page in (one, other):
        share(page, mortal, PLAIN)
    mortal.wait_for_readers(1)
    one.close()
    mortal.publish(PLAIN, "one is left")
    wait_for(other, PLAIN, PLAIN, "one is left")
    other.evaluate(f"ends['{PLAIN}']()")
    mortal.wait_for_readers(0)


def test_a_listener_learns_that_it_may_not_hear_its_channel(
    mortal: MortalServer, open_page: OpenPage
) -> None:
    page = open_page(mortal.alive.url, "shared.html")
    share(page, mortal, PLAIN)
    share(page, mortal, "/sys/**")
    share(page, mortal, "/none")
    page.wait_for_function("heard.length === 2")
    error = {"error": "404::history_missing"}
    assert heard(page, "/sys/**") == [["end", error]]
    assert heard(page, "/none") == [["missing", {"channel": "/none", **error}]]
    mortal.publish(PLAIN, 1)
    wait_for(page, PLAIN, PLAIN, 1)
