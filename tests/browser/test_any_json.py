"""Pages accept any JSON that is published: what one page failed on, all pages would refuse."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.browser.any_json import PROTOTYPE, values
from tests.browser.chatting import go_to, join, lines, press, say
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.publishing import publish
from tests.effort import TIMES
from tests.serving import Server, Servers

pytestmark = pytest.mark.usefixtures("cometd_js")
# The refusals, in the list of messages on the wire, of what the page cannot read.
REFUSED = "#wire .badge.bad"
# Gives the parts of the chat whatever the server or another client may send.
DRAW = """async (values) => {
    const view = await import("/static/chat/view.js");
    const {presenceOf} = await import("/static/chat/said.js");
    const {Members} = await import("/static/chat/members.js");
    const members = new Members();
    for (const value of values) {
        members.list(presenceOf(value));
        members.change(presenceOf(value));
        view.drawMembers(members.people, members.others);
    }
}"""


def complain(page: Page, complaints: list[str]) -> None:
    """Collect the errors that the browser reports."""

    def hear(said: ConsoleMessage) -> None:
        if said.type == "error":
            complaints.append(said.text)

    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", hear)


@pytest.fixture
def bob(chromium: Browser, servers: Servers) -> Iterator[Page]:
    """The page of bob in the lobby, whose browser reports no errors."""
    complaints: list[str] = []
    with chromium.new_context() as profile:
        page = profile.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        complain(page, complaints)
        join(page, servers.with_settings({}).url, "bob")
        yield page
        assert page.evaluate("window.hacked") is None
    assert complaints == []


def test_the_chat_accepts_any_json(bob: Page) -> None:
    every = values(0, 30 * TIMES)
    for begin in range(0, len(every), 40):
        # Fewer than the list of messages on the wire shows.
        publish(bob, "/chat/room/lobby", *every[begin : begin + 40])
        publish(bob, "/chat/typing/lobby", *every[begin : begin + 40])
        word = f"after {begin}"
        say(bob, word)
        expect(lines(bob).last).to_have_text(word)
        expect(bob.locator(REFUSED)).to_have_count(0)
    bob.evaluate(DRAW, every)


def test_rooms_may_have_the_names_of_javascript_properties(bob: Page) -> None:
    # Clients without the page's form may enter rooms with such names, too.
    bob.evaluate("document.getElementById('new-room').removeAttribute('pattern')")
    for name in PROTOTYPE:
        bob.get_by_label("Another room").fill(name)
        press(bob, "Open")
        expect(bob.locator("#talk-title")).to_have_text(name)
        expect(lines(bob)).to_have_count(0)
        say(bob, f"hello, {name}")
        expect(lines(bob)).to_have_text([f"hello, {name}"])
    bob.reload()
    for name in PROTOTYPE:
        go_to(bob, name)
        expect(lines(bob)).to_have_text([f"hello, {name}"])
    expect(bob.locator(REFUSED)).to_have_count(0)


def test_the_landing_page_accepts_any_json(profile: BrowserContext, server: Server) -> None:
    page = profile.new_page()
    page.goto(server.url)
    expect(page.locator("#state")).to_contain_text("Listening")
    channel = page.locator("[data-channel]").first.inner_text()
    every = values(1, 20 * TIMES)
    for begin in range(0, len(every), 40):
        last = f"after {begin}"
        publish(page, channel, *every[begin : begin + 40], last)
        expect(
            page.get_by_text(f"Arrived: {last}").or_(page.get_by_text(f'Arrived: "{last}"'))
        ).to_be_visible()
    expect(page.locator("#state")).to_have_class("state good")


def test_the_example_page_refuses_what_is_no_order_and_continues(
    profile: BrowserContext, server: Server
) -> None:
    page, complaints = profile.new_page(), list[str]()
    complain(page, complaints)
    page.goto(f"{server.url}/static/js/example.html")
    page.get_by_role("button", name="Order", exact=True).click()
    orders = page.get_by_role("listitem")
    expect(orders).to_have_text(["3 pieces"])
    every = values(2, 20 * TIMES)
    for begin in range(0, len(every), 100):
        # So many publishes of one session may wait for the store.
        publish(page, "/orders", *every[begin : begin + 100])
    page.get_by_role("button", name="Order", exact=True).click()
    expect(orders).to_have_text(["3 pieces", "3 pieces"])
    assert complaints == []
