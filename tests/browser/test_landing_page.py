"""The page at `/`: a first dead letter, on a desktop and on a phone."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser import axe
from tests.browser.conftest import TIMEOUT_MS
from tests.serving import Server, Servers, environment

SIZES = {"desk": (1280, 800), "phone": (360, 640)}
STEPS = ("send", "refuse", "letter", "replay")
ORDER = '{"order": 4711, "quantity": %d}'


@pytest.fixture
def page(profile: BrowserContext, server: Server) -> Page:
    found = profile.new_page()
    found.goto(server.url)
    expect(found.locator("#state")).to_contain_text("Listening")
    return found


@pytest.mark.parametrize("size", SIZES)
def test_the_landing_page_loads_without_errors_and_only_from_its_server(
    size: str, profile: BrowserContext, server: Server
) -> None:
    page = profile.new_page()
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    complaints, addresses = listen_to(page)

    response = page.goto(server.url)
    expect(page.locator("#state")).to_contain_text("Listening")

    assert response is not None
    assert response.ok
    assert page.title()
    assert page.locator("html[lang]").count() == 1
    assert page.locator("h1").inner_text()
    assert [address for address in addresses if not address.startswith(server.url)] == []
    assert complaints == []
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0, "it scrolls sideways"


@pytest.mark.parametrize("size", SIZES)
def test_what_is_filled_in_is_seen_whole(size: str, page: Page) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    for field in page.locator("#refusing input").all():
        assert field.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_its_first_sentence_says_what_it_is_for(page: Page) -> None:
    first = page.locator(".lead").inner_text().split(".")[0]
    assert "refuse" in first
    assert "dead letter" in first


def test_a_visitor_refuses_a_message_and_replays_its_letter_without_leaving_the_page(
    page: Page, server: Server
) -> None:
    complaints, _ = listen_to(page)
    walk(page, server)
    expect(said(page, "replaying")).to_contain_text('It came again, as {"order":4711,"quantity":1}')
    expect(page.locator("li.done")).to_have_count(len(STEPS))
    assert page.url.rstrip("/") == server.url
    assert complaints == []
    assert axe.findings(page) == []


def test_nothing_can_be_pressed_before_its_turn(page: Page) -> None:
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    for name in ("Refuse", "Show the letter", "Replay"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    expect(said(page, "refusing")).to_contain_text("send a message in step 1")
    expect(said(page, "reading")).to_contain_text("refuse a message in step 2")
    expect(said(page, "replaying")).to_contain_text("show the letter in step 3")


def test_what_is_no_json_and_a_wrong_token_get_a_sentence(page: Page, server: Server) -> None:
    page.locator("#sending").get_by_label("Data").fill("{order: 4711}")
    page.get_by_role("button", name="Send").click()
    expect(said(page, "sending")).to_contain_text("This is no JSON")
    expect(said(page, "sending")).to_contain_text("double quotes")

    page.locator("#sending").get_by_label("Data").fill(ORDER % 0)
    page.get_by_role("button", name="Send").click()
    page.get_by_role("button", name="Refuse").click()
    page.get_by_label("token").fill("guessed")
    page.get_by_role("button", name="Show the letter").click()
    expect(said(page, "reading")).to_contain_text("enter what data/admin-token has")
    expect(page.locator("#letter")).to_be_hidden()


def test_the_console_knows_the_token_of_this_tab(page: Page, server: Server) -> None:
    walk(page, server)
    page.locator("#letter a").click()
    expect(page.get_by_role("heading", name="Dead letter")).to_be_visible()
    expect(page.get_by_text("the quantity is 0").first).to_be_visible()


def test_the_keyboard_chooses_the_language_of_all_steps(page: Page) -> None:
    curl, script, python = (page.locator(f"[data-language={each}]") for each in ("sh", "js", "py"))
    expect(curl.first).to_be_visible()
    page.locator("input[value=sh]").first.focus()
    page.keyboard.press("ArrowRight")
    for block in script.all():
        expect(block).to_be_visible()
    page.keyboard.press("ArrowRight")
    for block in python.all():
        expect(block).to_be_visible()
    expect(curl.first).to_be_hidden()
    page.reload()
    expect(python.first).to_be_visible()


def test_the_code_is_readable_without_scripts(profile: BrowserContext, server: Server) -> None:
    browser = profile.browser
    assert browser is not None
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(server.url)
        expect(page.locator("[data-language=sh]").first).to_contain_text(
            "curl http://127.0.0.1:8080"
        )
        page.get_by_text("Python").first.click()
        expect(page.locator("[data-language=py]").first).to_be_visible()


def test_without_an_administration_the_page_says_where_letters_are(
    profile: BrowserContext, servers: Servers
) -> None:
    page = profile.new_page()
    page.goto(servers.with_settings({"admin": "127.0.0.1:0"}).url)
    expect(page.get_by_text("holdfast dead list").first).to_be_visible()
    expect(page.get_by_label("token")).to_have_count(0)
    page.get_by_role("button", name="Send").click()
    page.get_by_role("button", name="Refuse").click()
    expect(said(page, "refusing")).to_contain_text("Refused")


@pytest.mark.parametrize("kind", ["sh", "js", "py"])
def test_the_code_on_the_page_does_what_it_says(
    kind: str, page: Page, other_profile: BrowserContext, server: Server, tmp_path: Path
) -> None:
    """The code that refuses is another receiver: this page does not answer."""
    shell = Shell(page, other_profile.new_page(), server, tmp_path)
    with shell.running("refuse", kind):
        until(page, lambda: len(ask(server, f"sessions?channel={channel(page)}")["items"]) == 2)
        shell.run("send", kind)
        expect(said(page, "refusing")).to_contain_text("Arrived")
        until(page, lambda: "the quantity is 0" in shell.run("letter", kind))
        [letter] = ask(server, f"dead-letters?channel={channel(page)}")["items"]
        assert letter["code"] == "user.order.quantity"

        def is_replayed() -> bool:
            # A replay does not know receivers that began less than a second before.
            shell.run("replay", kind, LETTER=letter["id"])
            return bool(ask(server, f"dead-letters/{letter['id']}")["state"] == "replayed")

        until(page, is_replayed)


class Shell:
    """Runs the code of the page, where its language runs, in a folder with the server's data."""

    def __init__(self, page: Page, console: Page, server: Server, home: Path) -> None:
        self._page = page
        self._console = console
        self._server = server
        self._home = home
        (home / "data").symlink_to(server.data)
        console.goto(server.url)

    def run(self, step: str, kind: str, **known: str) -> str:
        """Run the code to its end; return what it prints."""
        if kind == "js":
            return str(self._console.evaluate(_LOGGED % self._code(step, kind, **known)))
        with self._start(self._code(step, kind, **known), kind) as process:
            out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return out

    @contextmanager
    def running(self, step: str, kind: str) -> Iterator[None]:
        """Run code that listens."""
        if kind == "js":
            self.run(step, kind)
            yield
            return
        with self._start(self._code(step, kind), kind) as process:
            try:
                yield
            finally:
                process.kill()

    def _start(self, code: str, kind: str) -> "subprocess.Popen[str]":
        words = ["bash", "-euc", code] if kind == "sh" else [sys.executable, "-c", code]
        return subprocess.Popen(
            words, cwd=self._home, env=environment(), text=True, stdout=PIPE, stderr=PIPE
        )

    def _code(self, step: str, kind: str, **known: str) -> str:
        place = f"fieldset:has([name={step}]) [data-language={kind}]"
        text = self._page.locator(place).text_content() or ""
        for name, value in {"TOKEN": operator_token(self._server), **known}.items():
            text = text.replace(name, value)
        return text


# What the code of a console logs.
_LOGGED = """async () => {
    const said = [];
    const console = {log: (...all) => said.push(all)};
    %s
    return JSON.stringify(said);
}"""


def walk(page: Page, server: Server) -> None:
    """Send a message, refuse it, see its letter, mend and replay it."""
    page.get_by_role("button", name="Send").click()
    expect(said(page, "refusing")).to_contain_text("Arrived")
    page.get_by_role("button", name="Refuse").click()
    page.get_by_label("token").fill(operator_token(server))
    page.get_by_role("button", name="Show the letter").click()
    expect(page.locator("#letter")).to_contain_text("user.order.quantity")
    page.get_by_role("button", name="Replay").click()
    expect(said(page, "replaying")).to_contain_text("It came again")


def said(page: Page, step: str) -> Locator:
    return page.locator(f"[data-of={step}]")


def channel(page: Page) -> str:
    return page.locator("[data-channel]").inner_text()


def operator_token(server: Server) -> str:
    return (server.data / "admin-token").read_text().strip()


def ask(server: Server, place: str) -> Any:
    head = {"Authorization": f"Bearer {operator_token(server)}"}
    with urlopen(Request(f"{server.url}/admin/api/v1/{place}", headers=head)) as answer:
        return json.load(answer)


def until(page: Page, holds: Callable[[], bool]) -> None:
    for _ in range(TIMEOUT_MS // 200):
        if holds():
            return
        page.wait_for_timeout(200)
    pytest.fail("it did not come true")


def listen_to(page: Page) -> tuple[list[str], list[str]]:
    """The errors on the page, and the addresses that it requests, from now on."""
    complaints: list[str] = []
    addresses: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"no {request.url}"))
    page.on("request", lambda request: addresses.append(request.url))
    return complaints, addresses
