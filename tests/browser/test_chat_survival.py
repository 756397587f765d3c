"""The chat: nothing is lost and nothing is shown twice, whatever happens to page and server."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.chatting import is_connected, join, line, lines, press, say
from tests.browser.console.world import World
from tests.browser.mortal import Mortal
from tests.serving import Server, Servers
from tests.slowness import times_slower

# With a tenth of a processor, three pages and their server take two minutes for one test.
pytestmark = [pytest.mark.usefixtures("cometd_js"), pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    mortal = Mortal(tmp_path_factory.mktemp("chat") / "data", {})
    yield mortal
    mortal.stop()


def test_messages_are_shown_once_despite_reloads_a_killed_server_and_offline_times(
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
    press(bob, "Go online")
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


def test_a_chat_without_reliable_messages_continues_after_a_restart_without_duplicates(
    profile: BrowserContext, other_profile: BrowserContext, mortal: Mortal, room: str
) -> None:
    ada, bob = profile.new_page(), other_profile.new_page()
    for page, name in ((ada, "ada"), (bob, "bob")):
        join(page, mortal.alive.url, f"{name}-{room}", room=room, reliable=False)
    say(ada, "before")
    expect(lines(bob)).to_have_text(["before"])
    mortal.kill()
    say(ada, "meanwhile")
    expect(ada.locator("#unsent li")).to_have_count(1)
    press(ada, "Go offline")
    mortal.start()
    # A message reaches bob only after he has come back.
    expect(bob.locator("#members .name")).to_have_text([f"bob-{room}"])
    press(ada, "Go online")
    for page in (ada, bob):
        expect(lines(page)).to_have_text(["before", "meanwhile"])
        expect(page.locator("#members .name")).to_have_text([f"ada-{room}", f"bob-{room}"])
        is_connected(page)
    expect(ada.locator("#unsent li")).to_have_count(0)


class Bed:
    """Stops a page between two instructions, as on a computer that sleeps."""

    def __init__(self, page: Page) -> None:
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.send("Debugger.enable")

    def sleep(self) -> None:
        self._devtools.send("Runtime.evaluate", {"expression": "setTimeout(() => { debugger; })"})

    def wake(self) -> None:
        self._devtools.send("Debugger.resume")


@pytest.fixture
def impatient(servers: Servers) -> Server:
    """A server whose sessions expire soon, and which further tabs of a browser ask often."""
    interval = 1500 * round(times_slower(most=4.0))
    settings = {"timeout": 1000, "max_interval": interval, "multi_session_interval": 200}
    return servers.with_settings(settings)


def test_pages_that_slept_longer_than_their_sessions_return_and_show_nothing_twice(
    profile: BrowserContext, other_profile: BrowserContext, impatient: Server, room: str
) -> None:
    ada, bob, eve = profile.new_page(), profile.new_page(), other_profile.new_page()
    names = [f"{name}-{room}" for name in ("ada", "bob", "eve")]
    for page, name in zip((ada, bob, eve), names, strict=True):
        join(page, impatient.url, name, room=room, reliable=page is not bob)
    there = eve.locator("#members .name")
    say(eve, "good night")
    for page in (ada, bob):
        expect(lines(page)).to_have_text(["good night"])

    beds = [Bed(ada), Bed(bob)]
    for bed in beds:
        bed.sleep()
    say(eve, "are you asleep?")
    # The queue of ada waits for her; the session of bob is gone.
    expect(there).to_have_text([names[0], names[2]])
    for bed in beds:
        bed.wake()
    expect(there).to_have_text(names)
    say(eve, "good morning")
    expect(lines(ada)).to_have_text(["good night", "are you asleep?", "good morning"])
    expect(lines(bob).last).to_have_text("good morning")
    assert_nothing_is_twice(bob)

    beds[0].sleep()
    say(eve, "do not wake up")
    expect(line(eve, "do not wake up")).to_be_visible()
    world = World(impatient.url, impatient.data)
    world.ask("DELETE", f"sessions/{names[0]}/100")
    expect(there).to_have_text(names[1:])
    beds[0].wake()
    expect(there).to_have_text(names)
    say(eve, "here again")
    expect(lines(ada).last).to_have_text("here again")
    assert_nothing_is_twice(ada)
    # Nothing shows whether ada got it, so it is a dead letter. So is the message before it, if its
    # ack had not left when the page went to sleep.
    letters = world.ask("GET", f"dead-letters?receiver={names[0]}/100")["items"]
    assert {letter["sender"] for letter in letters} == {f"client/{names[2]}/100"}
    in_doubt = [world.ask("GET", f"dead-letters/{letter['id']}")["data"] for letter in letters]
    assert "do not wake up" in [each.get("text") for each in in_doubt]


def assert_nothing_is_twice(page: Page) -> None:
    heard = lines(page).all_inner_texts()
    assert len(heard) == len(set(heard))


def test_a_message_that_one_tab_cannot_send_is_sent_by_another(
    profile: BrowserContext, impatient: Server, room: str
) -> None:
    tunnel, desk = profile.new_page(), profile.new_page()
    for page in (tunnel, desk):
        # Without a session name, both tabs have a session.
        join(page, impatient.url, f"tess-{room}", room=room, reliable=False)
    # It would send the message as soon as it has it.
    press(desk, "Go offline")
    # A tab in the background draws only once a second.
    tunnel.bring_to_front()
    press(tunnel, "Go offline")
    say(tunnel, "from the tunnel")
    for page in (tunnel, desk):
        expect(page.locator("#unsent li")).to_have_count(1)
    desk.bring_to_front()
    press(desk, "Go online")
    say(desk, "from the desk")
    expect(lines(desk)).to_have_text(["from the tunnel", "from the desk"])
    for page in (tunnel, desk):
        expect(page.locator("#unsent li")).to_have_count(0)
