"""Components of React and Vue show channels of a session, and those of /events."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.test_events import KEPT, Books
from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import MODULES, require
from tests.web.stream_reader import check

Component = Mapping[str, Any]
PLAIN, ROOM, _ = CHANNELS = ("/counted/plain", "/counted/rooms/1", "/counted/rooms/2/desk")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("components")


@pytest.fixture(scope="module")
def mortal(data: Path) -> Iterator[MortalServer]:
    mortal = MortalServer({"data": str(data), "channels": {"/counted/**": KEPT}})
    yield mortal
    mortal.stop()


@pytest.fixture(params=["react", "vue"])
def page(
    request: pytest.FixtureRequest, mortal: MortalServer, open_page: OpenPage, room: str
) -> Page:
    """A page with a named session, which has not begun."""
    require((MODULES / request.param).is_dir(), "tests/clients/node_modules (make setup-clients)")
    page = open_page(mortal.alive.url, f"components/{request.param}.html#{room}/1")
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    return page


def on(channel: str | None, name: str = "", source: str = "session", **more: Any) -> Component:
    return {"name": name or channel, "source": source, "channel": channel, **more}


def show(page: Page, *components: Component) -> None:
    page.evaluate("(all) => show(all)", list(components))


def handshake(page: Page) -> None:
    page.evaluate("() => new Promise((resolve) => cometd.handshake(resolve))")


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def wait_for_state(page: Page, name: str, holds: Callable[[Mapping[str, Any]], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds(state := state_of(page, name)):
        assert time.monotonic() < deadline, state
        page.wait_for_timeout(50)


def state_of(page: Page, name: str) -> Mapping[str, Any]:
    state: Mapping[str, Any] = json.loads(section(page, name).get_by_role("status").inner_text())
    return state


def is_connected(page: Page, name: str) -> None:
    wait_for_state(page, name, lambda state: state["isConnected"])


def data_of(page: Page, name: str) -> list[Any]:
    texts = section(page, name).get_by_role("listitem").locator("span").all_inner_texts()
    return [json.loads(text) for text in texts]


def wait_for(page: Page, name: str, data: object) -> None:
    shown = section(page, name).get_by_role("listitem").locator("span")
    expect(shown.filter(has_text=json.dumps(data)).first).to_be_visible()


def test_two_components_on_a_channel_have_one_subscription(
    mortal: MortalServer, page: Page
) -> None:
    show(page, on("/orders", "one"), on("/orders", "two"))
    handshake(page)
    is_connected(page, "one")
    mortal.publish("/orders", 1)
    for name in ("one", "two"):
        wait_for(page, name, 1)
    show(page, on("/orders", "two"))
    mortal.publish("/orders", 2)
    wait_for(page, "two", 2)
    assert data_of(page, "two") == [1, 2]
    assert page.evaluate("asked") == [["/meta/subscribe", "/orders"]]
    show(page)
    page.wait_for_function("asked.length === 2")
    assert page.evaluate("asked[1]") == ["/meta/unsubscribe", "/orders"]


def test_a_component_that_is_replaced_at_once_keeps_the_subscription(page: Page) -> None:
    show(page, on("/orders", "one"))
    handshake(page)
    is_connected(page, "one")
    for name in ("two", "three"):
        show(page, on("/orders", name))
    is_connected(page, "three")
    page.wait_for_timeout(200)
    assert page.evaluate("asked") == [["/meta/subscribe", "/orders"]]


def test_a_component_changes_its_channel(mortal: MortalServer, page: Page) -> None:
    handshake(page)
    show(page, on("/a", "shown"))
    is_connected(page, "shown")
    mortal.publish("/a", "of a")
    wait_for(page, "shown", "of a")
    show(page, on("/b", "shown"))
    page.wait_for_function("asked.length === 3")
    said = [["/meta/subscribe", "/a"], ["/meta/subscribe", "/b"], ["/meta/unsubscribe", "/a"]]
    assert page.evaluate("asked") == said
    mortal.publish("/a", "too late")
    mortal.publish("/b", "of b")
    wait_for(page, "shown", "of b")
    assert data_of(page, "shown") == ["of b"]


def letter_of(mortal: MortalServer, data: Path, receiver: str) -> Any:
    """The dead letter of a receiver, as soon as there is one."""
    token = (data / "admin-token").read_text().strip()
    url = f"{mortal.alive.url}/admin/api/v1/dead-letters?receiver={receiver}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    found: list[Any] = []
    while not found:
        with urllib.request.urlopen(request, timeout=60) as response:
            found = json.load(response)["items"]
    return found[0]


def test_messages_wait_until_they_are_done_or_refused(
    mortal: MortalServer, page: Page, data: Path, room: str
) -> None:
    confirming = on("/orders", "work", confirm=True)
    show(page, confirming, on("/orders", "all"))
    handshake(page)
    is_connected(page, "work")
    for n in range(3):
        mortal.publish("/orders", n)
    wait_for(page, "work", 2)
    assert page.evaluate("sources.session.state('/orders').messages.length") == 3
    section(page, "work").get_by_role("button", name="Done").first.click()
    section(page, "work").get_by_role("button", name="Refuse").first.click()
    expect(section(page, "work").get_by_role("listitem")).to_have_count(1)
    letter = letter_of(mortal, data, f"{room}/1")
    assert letter["code"] == "user.paper.empty"
    assert letter["reason"].endswith(": no paper")
    # What nobody has settled is not lost when the component goes.
    show(page)
    page.wait_for_function("asked.some(([channel]) => channel === '/meta/unsubscribe')")
    show(page, confirming)
    # The messages from before go, and this one comes again.
    work = section(page, "work").get_by_role("listitem").locator("span")
    expect(work).to_have_text(["2"])
    section(page, "work").get_by_role("button", name="Hold back").click()
    wait_for_state(page, "work", lambda state: state["isHeldBack"])


@pytest.mark.parametrize("happens", ["stop_and_start", "kill_and_start"])
def test_components_go_on_when_the_server_is_restarted(
    mortal: MortalServer, page: Page, happens: str
) -> None:
    every = [on(channel) for channel in CHANNELS]
    show(page, *every, on("/counted/**", "events", source="events"))
    handshake(page)
    is_connected(page, PLAIN)
    mortal.wait_for_readers(1)
    books = Books(lambda: mortal.alive)
    books.publish(5)
    with ThreadPoolExecutor() as threads:
        publishing = threads.submit(books.publish, 10)
        getattr(mortal, happens)()
        publishing.result()
    for channel in CHANNELS:
        accepted = books.accepted[channel]
        wait_for(page, channel, accepted[-1])
        check(accepted, data_of(page, channel))
    wait_for(page, "events", books.last)
    check(sorted(chain(*books.accepted.values())), data_of(page, "events"))
    is_connected(page, PLAIN)


def test_what_waited_for_the_session_waits_for_a_component_that_is_loaded_later(
    mortal: MortalServer, page: Page
) -> None:
    show(page, on("/orders"), on("/bills"))
    handshake(page)
    is_connected(page, "/bills")
    page.reload()
    page.wait_for_function("window.isReady")
    show(page)
    mortal.publish("/orders", "while it was away")
    mortal.publish("/bills", "this one, too")
    show(page, on("/bills"))
    handshake(page)
    wait_for(page, "/bills", "this one, too")
    assert state_of(page, "/bills")["waiting"] == 2
    page.wait_for_timeout(500)
    show(page, on("/bills"), on("/orders"))
    wait_for(page, "/orders", "while it was away")
    assert data_of(page, "/bills") == ["this one, too"]


def test_a_refused_subscription_is_an_error_of_its_channel_alone(page: Page) -> None:
    show(page, on("/sys/deadMessage", "wrong"), on("/orders"))
    handshake(page)
    is_connected(page, "/orders")
    wait_for_state(page, "wrong", lambda state: "error" in state)
    assert state_of(page, "wrong")["error"].endswith(":subscribe_denied")
    assert "error" not in state_of(page, "/orders")


def test_a_session_that_another_page_takes_says_so(
    mortal: MortalServer, page: Page, open_page: OpenPage
) -> None:
    show(page, on("/orders"))
    handshake(page)
    is_connected(page, "/orders")
    other = open_page(mortal.alive.url, page.url.split("/__test__/")[1])
    handshake(other)
    wait_for_state(page, "/orders", lambda state: not state["isConnected"])
    assert state_of(page, "/orders")["error"].endswith(":session_taken")


def test_without_a_channel_there_is_nothing(page: Page) -> None:
    handshake(page)
    show(page, on(None, "none"))
    assert data_of(page, "none") == []
    assert page.evaluate("asked") == []
