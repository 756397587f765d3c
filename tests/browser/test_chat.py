"""The chat: nothing is lost and nothing is shown twice, whatever happens to page and server."""

import gzip
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Response, expect

from tests.browser.axe import findings
from tests.browser.chatting import is_connected, join, line, lines, press, say, wire
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.publishing import publish
from tests.serving import Server, Servers, end_whoever_lives_in

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("cometd_js")]
PHONE = {"width": 360, "height": 640}
MOST_BYTES = 150_000
MOST_MS = 1000
# Texts that would run as script wherever they became markup, an address or a style.
INJECTIONS = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    '"><svg onload=window.hacked=3>',
    "javascript:window.hacked=4",
    "{{constructor.constructor('window.hacked=5')()}}",
    "</p><iframe srcdoc='<script>parent.hacked=6</script>'>",
    "<style>*{display:none}</style>",
]


@pytest.fixture
def room() -> str:
    """A room in which nobody was before."""
    return uuid.uuid4().hex[:12]


@pytest.fixture(scope="module")
def pair(chromium: Browser, servers: Servers) -> Iterator[tuple[Page, Page]]:
    """Ada and bob, in a browser each, and no complaint of a browser in the end."""
    complaints: list[str] = []
    url = servers.with_settings({}).url
    with chromium.new_context() as hers, chromium.new_context() as his:
        ada, bob = hers.new_page(), his.new_page()
        for page, name in ((ada, "ada"), (bob, "bob")):
            page.set_default_timeout(TIMEOUT_MS)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            join(page, url, name)
        yield ada, bob
    assert complaints == []


@pytest.fixture
def two(pair: tuple[Page, Page], room: str) -> tuple[Page, Page]:
    """Both of them in a room in which nothing was said yet."""
    for page in pair:
        page.get_by_label("Another room").fill(room)
        press(page, "Open")
        is_connected(page)
    return pair


class Mortal:
    """A server that is killed and comes back with what its store has."""

    def __init__(self, data: Path) -> None:
        self._settings = {"data": str(data), "durability": "always"}
        self._data = data
        self.alive = Server(self._settings)

    def kill(self) -> None:
        self.alive.process.kill()
        self.alive.process.wait()

    def start(self) -> None:
        port = int(self.alive.url.rsplit(":", 1)[1])
        self.alive.stop()
        self.alive = Server({**self._settings, "port": port})

    def stop(self) -> None:
        self.alive.stop()
        end_whoever_lives_in(self._data)


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Mortal]:
    mortal = Mortal(tmp_path / "data")
    yield mortal
    mortal.stop()


def test_nothing_is_lost_or_shown_twice(
    profile: BrowserContext, other_profile: BrowserContext, mortal: Mortal
) -> None:
    ada, bob = profile.new_page(), other_profile.new_page()
    url = mortal.alive.url
    join(ada, url, "ada")
    join(bob, url, "bob")
    said: list[str] = []

    def tell(page: Page, *words: str) -> None:
        for word in words:
            say(page, word)
            said.append(word)

    tell(ada, "hello")
    expect(lines(bob)).to_have_text(said)

    press(bob, "Go offline")
    tell(ada, "you are offline", "still offline")
    expect(lines(ada)).to_have_text(said)
    press(bob, "Go offline")
    expect(lines(bob)).to_have_text(said)

    bob.reload()
    is_connected(bob)
    expect(lines(bob)).to_have_text(said)

    bob.goto("about:blank")
    tell(ada, "your page is closed")
    expect(lines(ada)).to_have_text(said)
    mortal.kill()
    tell(ada, "the server is dead", "is anybody there?")
    expect(ada.locator("#unsent li")).to_have_count(2)
    mortal.start()
    expect(lines(ada)).to_have_text(said)
    expect(ada.locator("#unsent li")).to_have_count(0)

    press(ada, "Go offline")
    tell(ada, "not sent when the page is loaded again")
    expect(ada.locator("#unsent li")).to_have_count(1)
    ada.reload()
    expect(lines(ada)).to_have_text(said)
    expect(ada.locator("#unsent li")).to_have_count(0)

    bob.goto(f"{url}/chat/")
    expect(lines(bob)).to_have_text(said)
    tell(bob, "I have it all")
    for page in (ada, bob):
        expect(lines(page)).to_have_text(said)


def test_a_refused_message_is_one_dead_letter_and_the_rest_flows(two: tuple[Page, Page]) -> None:
    ada, bob = two
    press(bob, "Refuse the next")
    say(ada, "bad news")
    say(ada, "good news")
    expect(line(bob, "You refused a message")).to_contain_text("user.update.error")
    expect(line(bob, "good news")).to_be_visible()
    expect(line(bob, "bad news")).to_have_count(0)
    expect(wire(bob).get_by_text("user.update.error").first).to_be_attached()
    expect(bob.locator("#refuse")).to_have_attribute("aria-pressed", "false")


def test_who_cannot_now_gets_it_again(two: tuple[Page, Page]) -> None:
    ada, bob = two
    bob.get_by_label("Error code").select_option("communication.resource.temporary.unavailable")
    press(bob, "Refuse the next")
    say(ada, "not now?")
    expect(line(bob, "You refused a message")).to_be_visible()
    expect(line(bob, "not now?")).to_contain_text("redelivered")


def test_who_is_held_back_is_seen_to_wait_and_gets_all_of_it(two: tuple[Page, Page]) -> None:
    ada, bob = two
    hold = bob.get_by_role("button", name="Hold back")
    hold.click()
    expect(hold).to_have_attribute("aria-pressed", "true")
    is_connected(bob)
    say(ada, "while you pause")
    expect(line(ada, "while you pause")).to_be_visible()
    expect(ada.locator("#members .member").nth(1)).to_contain_text("held back")
    expect(lines(bob)).to_have_count(0)
    hold.click()
    expect(lines(bob)).to_have_text(["while you pause"])
    expect(hold).to_have_attribute("aria-pressed", "false")


def test_what_is_not_acknowledged_comes_again_and_says_so(two: tuple[Page, Page]) -> None:
    ada, bob = two
    box = bob.get_by_label("Acknowledge incoming messages")
    box.uncheck()
    say(ada, "did you hear?")
    expect(line(bob, "did you hear?")).to_contain_text("redelivered")
    expect(lines(bob)).to_have_count(1)
    box.check()
    say(ada, "and now?")
    expect(line(bob, "and now?")).to_be_visible()
    expect(lines(bob)).to_have_count(2)


def test_a_killed_connection_is_made_again(two: tuple[Page, Page]) -> None:
    ada, bob = two
    press(bob, "Kill the connection")
    say(ada, "are you back?")
    expect(lines(bob)).to_have_text(["are you back?"])
    is_connected(bob)


def test_words_for_one_person_and_typing(two: tuple[Page, Page]) -> None:
    ada, bob = two
    ada.get_by_label("Message", exact=True).press_sequentially("hm")
    expect(bob.locator("#typing")).to_have_text("ada is typing …")
    say(ada, "between us", to="bob")
    expect(line(bob, "between us")).to_contain_text("to you alone")
    expect(line(ada, "between us")).to_contain_text("to bob alone")
    expect(bob.locator("#typing")).to_have_text("")


def test_rooms_beside_each_other(two: tuple[Page, Page], room: str) -> None:
    ada, bob = two
    for page in two:
        page.get_by_label("Another room").fill(f"{room}-b")
        press(page, "Open")
    bob.locator("#rooms").get_by_role("button", name=room, exact=True).click()
    say(ada, "in the other room")
    expect(bob.locator("#rooms").get_by_text("1 new")).to_be_visible()
    expect(lines(bob)).to_have_count(0)
    bob.get_by_role("button", name=f"{room}-b").click()
    expect(lines(bob)).to_have_text(["in the other room"])


def test_what_was_said_in_rooms_of_another_visit_is_heard(
    two: tuple[Page, Page], profile: BrowserContext, server: Server, room: str
) -> None:
    ada, eve = two[0], profile.new_page()
    join(eve, server.url, f"eve-{room}", room=room)
    eve.close()
    say(ada, "come back")
    expect(line(ada, "come back")).to_be_visible()
    expect(ada.locator("#members")).to_contain_text("away, 1 waiting")
    again = profile.new_page()
    join(again, server.url, f"eve-{room}", room=f"{room}-other")
    again.locator("#rooms").get_by_role("button", name=f"{room} 1 new").click()
    expect(lines(again)).to_have_text(["come back"])


def test_who_opens_the_chat_elsewhere_takes_it_over(
    two: tuple[Page, Page], profile: BrowserContext, server: Server, room: str
) -> None:
    ada, bob = two
    again = profile.new_page()
    join(again, server.url, "bob", room=room)
    expect(bob.get_by_role("alert")).to_contain_text("elsewhere")
    press(bob, "Take it back")
    say(ada, "who are you?")
    expect(lines(bob)).to_have_text(["who are you?"])
    expect(again.get_by_role("alert")).to_contain_text("elsewhere")


def test_it_works_without_reliable_messages(
    profile: BrowserContext, server: Server, room: str
) -> None:
    page = profile.new_page()
    join(page, server.url, "plain", room=room, reliable=False)
    say(page, "hello")
    expect(lines(page)).to_have_text(["hello"])
    expect(page.get_by_label("Acknowledge incoming messages")).to_be_hidden()
    expect(page.locator("#members")).to_contain_text("plain")


def test_a_keyboard_is_enough(profile: BrowserContext, server: Server, room: str) -> None:
    page = profile.new_page()
    page.goto(f"{server.url}/chat/")
    expect(page.get_by_role("button", name="Join")).to_be_enabled()
    keys = page.keyboard
    keys.type(f"keys-{room}")
    keys.press("Tab")
    keys.type(room)
    keys.press("Enter")
    is_connected(page)
    keys.type("by keyboard")
    keys.press("Enter")
    expect(lines(page)).to_have_text(["by keyboard"])
    seen = set()
    for _ in range(80):
        keys.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert {"leave", "log", "to", "refuse", "hold", "offline", "kill", "acknowledge"} <= seen
    page.locator("#wire summary").first.focus()
    keys.press("Enter")
    expect(page.locator("#wire pre").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(
    scheme: str, profile: BrowserContext, server: Server, room: str
) -> None:
    page = profile.new_page()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(f"{server.url}/chat/")
    expect(page.get_by_role("button", name="Join")).to_be_enabled()
    assert findings(page) == []
    join(page, server.url, f"axe-{room}", room=room)
    say(page, "legible?")
    expect(lines(page)).to_have_count(1)
    assert findings(page) == []


def test_on_a_phone_one_part_is_seen_at_a_time(
    profile: BrowserContext, server: Server, room: str
) -> None:
    page = profile.new_page()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    join(page, server.url, f"phone-{room}", room=room)
    say(page, "word" * 100)
    for view, part in [("People", "#members"), ("Wire", "#wire"), ("Chat", "#lines")]:
        page.locator("#views").get_by_role("button", name=view).click()
        expect(page.locator(part)).to_be_visible()
        wide = "document.documentElement.scrollWidth - window.innerWidth"
        assert page.evaluate(wide) <= 0, f"{view} scrolls sideways"


def test_text_stays_text_wherever_it_comes_from(two: tuple[Page, Page], room: str) -> None:
    ada, bob = two
    # Then it is news no more who is there, and stays what somebody else says of it.
    expect(bob.locator("#members .name")).to_have_count(2)
    forged = [{"id": text, "from": text, "text": text} for text in INJECTIONS]
    publish(ada, f"/chat/room/{room}", *forged)
    publish(ada, f"/chat/typing/{room}", forged[0])
    members = [{"name": text, "state": text, "waiting": 0} for text in INJECTIONS]
    expect(line(bob, INJECTIONS[0]).first).to_be_visible()
    expect(lines(bob)).to_have_text(INJECTIONS)
    publish(ada, f"/chat/members/{room}", {"members": members})
    expect(bob.locator("#members .name").first).to_have_text(INJECTIONS[0])
    expect(bob.locator("#typing")).to_contain_text(INJECTIONS[0])
    assert bob.evaluate("window.hacked") is None
    made = "#room :is(script, img, svg, iframe, style, a)"
    expect(bob.locator(made)).to_have_count(0)


def test_nobody_rewrites_what_another_has_said(two: tuple[Page, Page], room: str) -> None:
    ada, bob = two
    said = [{"id": "1", "from": "eve", "text": text} for text in ("first", "rewritten")]
    publish(ada, f"/chat/room/{room}", *said, {"id": "2", "from": "eve", "text": "last"})
    expect(lines(bob)).to_have_text(["first", "last"])


def test_it_loads_fast_and_from_here_only(profile: BrowserContext, server: Server) -> None:
    page = profile.new_page()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    took = [until_joinable(page, server)]
    assert sum(len(gzip.compress(each.body())) for each in answers) < MOST_BYTES
    took += [until_joinable(page, server) for _ in range(2)]
    assert min(took) < MOST_MS
    assert [each.url for each in answers if not each.url.startswith(server.url)] == []
    policy = answers[0].headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'self'" in policy


def until_joinable(page: Page, server: Server) -> float:
    """Milliseconds from the address to a form that can be sent."""
    page.goto(f"{server.url}/chat/")
    page.locator("#join button:enabled").wait_for()
    took: float = page.evaluate("performance.now()")
    return took


def test_it_can_be_switched_off(servers: Servers) -> None:
    url = servers.with_settings({"chat": False}).url
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{url}/chat/")


def test_it_says_what_is_missing(profile: BrowserContext, server: Server) -> None:
    page = profile.new_page()
    page.route("**/static/cometd/**", lambda route: route.fulfill(status=404))
    page.goto(f"{server.url}/chat/")
    expect(page.get_by_role("alert")).to_contain_text("make setup-pages")
