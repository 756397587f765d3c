"""The page of the chat: accessible, small, and usable in browsers that offer little."""

import gzip
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from playwright.sync_api import BrowserContext, Response, expect

from tests.browser.axe import findings
from tests.browser.chatting import go_to, is_connected, join, lines, say
from tests.browser.conftest import FORBID_STORAGE
from tests.serving import Server, Servers

pytestmark = pytest.mark.usefixtures("cometd_js")
PHONE = {"width": 360, "height": 640}
MOST_BYTES = 150_000


# An emoji of three, joined by characters without width.
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


def test_the_chat_works_without_reliable_messages(
    profile: BrowserContext, server: Server, room: str
) -> None:
    page = profile.new_page()
    join(page, server.url, "plain", room=room, reliable=False)
    say(page, "hello")
    expect(lines(page)).to_have_text(["hello"])
    expect(page.get_by_label("Acknowledge incoming messages")).to_be_hidden()
    expect(page.locator("#members")).to_contain_text("plain")


def test_the_chat_can_be_used_by_keyboard(
    profile: BrowserContext, server: Server, room: str
) -> None:
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
def test_axe_finds_no_serious_problem_in_the_chat(
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


def test_a_phone_shows_one_part_of_the_chat_at_a_time(
    profile: BrowserContext, server: Server, room: str
) -> None:
    page = profile.new_page()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    join(page, server.url, f"phone-{room}", room=room)
    say(page, "word" * 100)
    for view, part in [("People", "#members"), ("Faults", "#wire"), ("Chat", "#lines")]:
        page.locator("#views").get_by_role("button", name=view).click()
        expect(page.locator(part)).to_be_visible()
        wide = "document.documentElement.scrollWidth - window.innerWidth"
        assert page.evaluate(wide) <= 0, f"{view} scrolls sideways"
    page.locator("#views").get_by_role("button", name="People").click()
    go_to(page, room)
    expect(page.locator("#lines")).to_be_visible()


def test_the_chat_works_in_a_browser_without_storage_and_says_so(
    profile: BrowserContext, server: Server, room: str
) -> None:
    page = profile.new_page()
    page.add_init_script(FORBID_STORAGE)
    join(page, server.url, f"forgetful-{room}", room=room)
    say(page, "hello")
    expect(lines(page)).to_have_text(["hello"])
    expect(page.get_by_text("This browser does not store data")).to_be_visible()


def test_the_chat_works_without_tls(profile: BrowserContext, server: Server, room: str) -> None:
    page = profile.new_page()
    join(page, server.url.replace("127.0.0.1", "chat.test"), f"open-{room}", room=room)
    assert page.evaluate("isSecureContext") is False
    say(page, "hello")
    expect(lines(page)).to_have_text(["hello"])
    expect(page.get_by_text("This browser does not store data")).to_be_hidden()


def test_the_chat_is_small_and_loads_nothing_from_other_servers(
    profile: BrowserContext, server: Server
) -> None:
    page = profile.new_page()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(f"{server.url}/chat/")
    page.locator("#join button:enabled").wait_for()
    assert sum(len(gzip.compress(each.body())) for each in answers) < MOST_BYTES
    assert [each.url for each in answers if not each.url.startswith(server.url)] == []
    policy = answers[0].headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'self'" in policy


def test_the_chat_can_be_disabled(servers: Servers) -> None:
    url = servers.with_settings({"chat": False}).url
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{url}/chat/")


def test_the_chat_says_how_to_get_missing_files(profile: BrowserContext, server: Server) -> None:
    page = profile.new_page()
    page.route("**/static/cometd/**", lambda route: route.fulfill(status=404))
    page.goto(f"{server.url}/chat/")
    expect(page.get_by_role("alert")).to_contain_text("make setup-pages")


def test_characters_that_reorder_or_hide_text_are_shown_escaped_in_the_chat(
    profile: BrowserContext, server: Server, room: str
) -> None:
    page = profile.new_page()
    join(page, server.url, f"reorder-{room}", room=room)
    for said in (
        "pay \u202eeve",
        "pay \u2066eve\u2069",
        "a\u200bb",
        "\u0645\u06cc\u200c\u062e",
        FAMILY,
    ):
        say(page, said)
    expect(lines(page)).to_have_text(
        [r"pay \u202eeve", r"pay \u2066eve\u2069", r"a\u200bb", "\u0645\u06cc\u200c\u062e", FAMILY]
    )
