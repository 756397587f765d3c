"""`EventSource` of a browser reads `/events`, with nothing but what the browser does by itself."""

import json
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage
from tests.clients.mortal_server import MortalServer
from tests.serving import Server, Servers
from tests.unit.login.signing import SECRET, token
from tests.web.stream_reader import check

# A page of another site, which the server allows.
ELSEWHERE = "http://elsewhere.test"
# What a page reads, and the channels on which it hears messages.
ASKED = ("/counted/plain", "/counted/rooms/**")
CHANNELS = ("/counted/plain", "/counted/rooms/1", "/counted/rooms/2/desk")
KEPT = {"history": 1000, "durable": True}
RIGHTS = """
[[rule]]
who = ["*"]
may = ["all"]
channels = ["/counted/**"]
"""


class Books:
    """The numbers that a server has accepted on each channel. They grow."""

    def __init__(self, server: Callable[[], Server]) -> None:
        self._server = server
        # The last number, which the server may have refused.
        self.last = 0
        self.accepted: defaultdict[str, list[int]] = defaultdict(list)

    def publish(self, count: int) -> None:
        """Publish until so many more are accepted on each channel, wherever the server is."""
        for channel in CHANNELS * count:
            self.last += 1
            while not self._is_accepted(channel, self.last):
                # Nobody knows whether the server has it, so it must not come twice from here.
                self.last += 1
                time.sleep(0.05)
            self.accepted[channel].append(self.last)

    def _is_accepted(self, channel: str, number: int) -> bool:
        body = json.dumps({"channel": channel, "data": number}).encode()
        try:
            with urllib.request.urlopen(f"{self._server().url}/publish", body, 10) as response:
                return bool(json.load(response)[0]["successful"])
        except OSError:
            return False


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[MortalServer]:
    channels = {"/counted/**": KEPT, "/brief": {"history": 10}}
    mortal = MortalServer(
        {"data": str(tmp_path), "allow_origin": [ELSEWHERE], "channels": channels}
    )
    yield mortal
    mortal.stop()


def listen(page: Page, url: str, *channels: str) -> None:
    """Let a page read these channels; returns when it does."""
    asked = urlencode([("channel", each) for each in channels])
    page.evaluate("(url) => listen(url)", f"{url}/events?{asked}")


def wait_heard(page: Page, name: str, data: Any) -> None:
    """Wait until the page has heard such an event."""
    page.wait_for_function(
        "(wanted) => heard.some((each) => JSON.stringify(each) === wanted)",
        arg=json.dumps([name, data], separators=(",", ":")),
    )


def said_of(page: Page, name: str) -> list[Any]:
    return [data for event, data in page.evaluate("heard") if event == name]


@pytest.mark.parametrize("site", ["", ELSEWHERE], ids=["here", "elsewhere"])
def test_a_page_hears_each_message_once_and_in_order_whatever_happens_to_the_server(
    site: str, mortal: MortalServer, open_page: OpenPage
) -> None:
    page, books = open_page(site or mortal.alive.url, "events.html"), Books(lambda: mortal.alive)
    listen(page, mortal.alive.url, *ASKED)
    for happens in (mortal.stop_and_start, mortal.kill_and_start, mortal.stop_and_start):
        books.publish(5)
        with ThreadPoolExecutor() as threads:
            publishing = threads.submit(books.publish, 20)
            happens()
            publishing.result()
    for channel in CHANNELS:
        last = books.accepted[channel][-1]
        wait_heard(page, "message", {"channel": channel, "data": last})
    for channel in CHANNELS:
        heard = [each["data"] for each in said_of(page, "message") if each["channel"] == channel]
        check(books.accepted[channel], heard)
    # After a kill, the server does not know whether a channel has been lost that matches.
    others = [each for each in page.evaluate("heard") if each[0] != "message"]
    assert {(name, said["channel"]) for name, said in others} <= {("lost", ASKED[1])}


def test_a_page_learns_what_is_missing_and_what_is_lost(
    mortal: MortalServer, open_page: OpenPage
) -> None:
    page = open_page(mortal.alive.url, "events.html")
    listen(page, mortal.alive.url, "/none", "/brief", "/counted/plain")
    wait_heard(page, "missing", {"channel": "/none", "error": "404::history_missing"})
    mortal.publish("/counted/plain", 1)
    mortal.publish("/brief", "not durable")
    wait_heard(page, "message", {"channel": "/brief", "data": "not durable"})
    assert said_of(page, "lost") == []
    mortal.kill_and_start()
    mortal.publish("/counted/plain", 2)
    wait_heard(page, "message", {"channel": "/counted/plain", "data": 2})
    # What was kept is whole; nobody knows what else the other history had.
    page.wait_for_function("heard.some(([name]) => name === 'lost')")
    lost = said_of(page, "lost")
    assert [each["channel"] for each in lost] == ["/brief"]
    assert lost[0]["error"] == "410::history_lost"
    assert lost[0]["lost"]["from"] < lost[0]["lost"]["to"]
    heard = [each["data"] for each in said_of(page, "message")]
    assert heard == [1, "not durable", 2]


def test_a_page_for_which_there_is_no_room_reads_as_soon_as_there_is(
    servers: Servers, open_page: OpenPage
) -> None:
    server = servers.with_settings({"channels": {"/counted/**": KEPT}, "max_readers": 1})
    url, books = server.url, Books(lambda: server)
    first, second = (open_page(url, "events.html") for _ in range(2))
    for page in (first, second):
        listen(page, url, "/counted/plain")
    error = {"error": "503:max_readers:readers_exceeded"}
    wait_heard(second, "unavailable", error)
    first.close()
    # The browser has gone on trying.
    while not said_of(second, "message"):
        books.publish(1)
        second.wait_for_timeout(200)


def test_a_page_whose_rights_are_taken_away_learns_it_and_is_not_let_in_again(
    tmp_path: Path, open_page: OpenPage
) -> None:
    key, rights = tmp_path / "key", tmp_path / "rights.toml"
    key.write_bytes(SECRET)
    rights.write_text(RIGHTS)
    server = Server(
        {
            "login_keys": str(key),
            "login_cookie": "login",
            "rights": str(rights),
            "channels": {"/counted/**": KEPT},
        }
    )
    try:
        page = open_page(server.url, "events.html")
        page.context.add_cookies([{"name": "login", "value": token(), "url": server.url}])
        listen(page, server.url, "/counted/plain")
        rights.write_text(RIGHTS.replace('"all"', '"publish"'))
        wait_heard(page, "end", {"error": "403:denied_by_rights:subscribe_denied"})
        page.wait_for_function("source.readyState === EventSource.CLOSED")
    finally:
        server.stop()
