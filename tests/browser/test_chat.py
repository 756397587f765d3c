"""The chat: messages between users, and the effects of the faults that it can cause."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.chatting import go_to, is_connected, join, leave, line, lines, press, say, wire
from tests.browser.conftest import SETTINGS, TIMEOUT_MS
from tests.browser.publishing import publish
from tests.serving import Server, Servers
from tests.slowness import times_slower

pytestmark = pytest.mark.usefixtures("cometd_js")
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
# Collects the texts that explain a fault, from now on.
REMEMBER_EXPLANATIONS = """() => {
    window.explanations = [];
    const element = document.getElementById("explanation");
    const remember = () => window.explanations.push(element.textContent);
    new MutationObserver(remember).observe(element, {childList: true});
}"""
# Draws the members of a room, as after a message of the server.
DRAW_MEMBERS = """async ([members, others]) => {
    const view = await import("/static/chat/view.js");
    view.drawMembers(members, others);
}"""


@pytest.fixture(scope="module")
def pair(chromium: Browser, servers: Servers) -> Iterator[tuple[Page, Page]]:
    """The pages of ada and bob, each in its own browser, which report no errors."""
    complaints: list[str] = []
    url = servers.with_settings(SETTINGS).url
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
    """The pages of both in a new room."""
    # Bob, who mostly listens, enters first.
    for page in reversed(pair):
        page.get_by_label("Another room").fill(room)
        press(page, "Open")
        is_connected(page)
    return pair


def test_a_refused_message_is_reported_and_the_next_one_arrives(two: tuple[Page, Page]) -> None:
    ada, bob = two
    press(bob, "Refuse the next")
    say(ada, "bad news")
    say(ada, "good news")
    expect(line(bob, "You refused a message")).to_contain_text("user.update.error")
    expect(line(bob, "good news")).to_be_visible()
    expect(line(bob, "bad news")).to_have_count(0)
    expect(wire(bob).get_by_text("user.update.error").first).to_be_attached()
    expect(bob.locator("#refuse")).to_have_attribute("aria-pressed", "false")


def test_a_message_refused_as_temporarily_unavailable_is_redelivered(
    two: tuple[Page, Page],
) -> None:
    ada, bob = two
    bob.get_by_label("Error code").select_option("communication.resource.temporary.unavailable")
    press(bob, "Refuse the next")
    say(ada, "not now?")
    expect(line(bob, "You refused a message")).to_be_visible()
    expect(line(bob, "not now?")).to_contain_text("redelivered")


def test_a_member_who_is_held_back_is_shown_so_and_gets_the_messages_afterwards(
    two: tuple[Page, Page],
) -> None:
    ada, bob = two
    hold = bob.get_by_role("button", name="Hold back")
    hold.click()
    resume = bob.get_by_role("button", name="Resume")
    expect(resume).to_be_visible()
    expect(hold).to_have_count(0)
    is_connected(bob)
    say(ada, "while you pause")
    expect(line(ada, "while you pause")).to_be_visible()
    expect(ada.locator("#members .member").nth(1)).to_contain_text("held back")
    expect(lines(bob)).to_have_count(0)
    resume.click()
    expect(lines(bob)).to_have_text(["while you pause"])
    expect(ada.locator("#members .member").nth(1)).not_to_contain_text("held back")
    expect(hold).to_be_visible()


def test_an_unacknowledged_message_is_redelivered_and_shown_once(two: tuple[Page, Page]) -> None:
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


def test_a_killed_connection_is_replaced(two: tuple[Page, Page]) -> None:
    ada, bob = two
    # The page says that the connection is cut before it says that it is restored.
    bob.evaluate(REMEMBER_EXPLANATIONS)
    press(bob, "Kill the connection")
    say(ada, "are you back?")
    expect(lines(bob)).to_have_text(["are you back?"])
    is_connected(bob)
    expect(bob.locator("#explanation")).to_contain_text("is restored")
    cut, restored = bob.evaluate("window.explanations")
    assert "The connection is cut" in cut
    assert "is restored" in restored


def test_a_page_that_is_offline_sends_nothing_and_says_so(two: tuple[Page, Page]) -> None:
    ada, bob = two
    kill = bob.get_by_role("button", name="Kill the connection")
    before = kill.bounding_box()
    press(bob, "Go offline")
    expect(kill).to_be_disabled()
    assert kill.bounding_box() == before
    expect(bob.locator("#state")).to_have_text("Offline by choice")
    say(bob, "from the tunnel")
    expect(wire(bob).filter(has_text="from the tunnel").first).to_contain_text("not sent")
    press(bob, "Go online")
    expect(line(ada, "from the tunnel")).to_be_visible()
    expect(kill).to_be_enabled()
    expect(wire(bob).filter(has_text="from the tunnel").last).not_to_contain_text("not sent")


def test_private_messages_and_typing_are_shown(two: tuple[Page, Page]) -> None:
    ada, bob = two
    ada.get_by_label("Message", exact=True).press_sequentially("hm")
    expect(bob.locator("#typing")).to_have_text("ada is typing …")
    say(ada, "between us", to="bob")
    expect(line(bob, "between us")).to_contain_text("to you alone")
    expect(line(ada, "between us")).to_contain_text("to bob alone")
    expect(bob.locator("#typing")).to_have_text("")


def test_messages_of_another_room_are_counted_as_new(two: tuple[Page, Page], room: str) -> None:
    ada, bob = two
    for page in two:
        page.get_by_label("Another room").fill(f"{room}-b")
        press(page, "Open")
    go_to(bob, room)
    say(ada, "in the other room")
    # A late message may be new in a room of an earlier test.
    expect(bob.locator("#rooms").get_by_role("button", name=f"{room}-b 1 new")).to_be_visible()
    expect(lines(bob)).to_have_count(0)
    go_to(bob, f"{room}-b")
    expect(lines(bob)).to_have_text(["in the other room"])


def test_messages_in_a_room_of_an_earlier_visit_arrive(
    two: tuple[Page, Page], profile: BrowserContext, server: Server, room: str
) -> None:
    ada, eve = two[0], profile.new_page()
    join(eve, server.url, f"eve-{room}", room=room)
    eve.close()
    say(ada, "come back")
    expect(line(ada, "come back")).to_be_visible()
    again = profile.new_page()
    join(again, server.url, f"eve-{room}", room=f"{room}-other")
    again.locator("#rooms").get_by_role("button", name=f"{room} 1 new").click()
    expect(lines(again)).to_have_text(["come back"])


def test_a_chat_opened_elsewhere_takes_over_and_can_be_taken_back(
    two: tuple[Page, Page], profile: BrowserContext, server: Server, room: str
) -> None:
    ada, bob = two
    again = profile.new_page()
    join(again, server.url, "bob", room=room)
    expect(bob.get_by_role("alert")).to_contain_text("elsewhere")
    press(bob, "Use this page")
    say(ada, "who are you?")
    expect(lines(bob)).to_have_text(["who are you?"])
    expect(again.get_by_role("alert")).to_contain_text("elsewhere")


def test_hostile_text_stays_text_wherever_it_is_shown(two: tuple[Page, Page], room: str) -> None:
    ada, bob = two
    # The list of members is complete then.
    expect(bob.locator("#members .name")).to_have_count(2)
    forged = [{"id": text, "from": text, "text": text} for text in INJECTIONS]
    publish(ada, f"/chat/room/{room}", *forged)
    publish(ada, f"/chat/typing/{room}", forged[0])
    expect(line(bob, INJECTIONS[0]).first).to_be_visible()
    expect(lines(bob)).to_have_text(INJECTIONS)
    expect(bob.locator("#typing")).to_contain_text(INJECTIONS[0])
    # The server allows no such names.
    members = [{"name": text, "state": text} for text in INJECTIONS]
    bob.evaluate(DRAW_MEMBERS, [members, 0])
    expect(bob.locator("#members .name")).to_have_text(INJECTIONS)
    assert bob.evaluate("window.hacked") is None
    made = ":is(#lines, #members, #typing, #wire) :is(script, img, svg, iframe, style, a)"
    expect(bob.locator(made)).to_have_count(0)


def test_a_message_with_a_known_id_does_not_replace_the_first_one(
    two: tuple[Page, Page], room: str
) -> None:
    ada, bob = two
    said = [{"id": "1", "from": "eve", "text": text} for text in ("first", "rewritten")]
    publish(ada, f"/chat/room/{room}", *said, {"id": "2", "from": "eve", "text": "last"})
    expect(lines(bob)).to_have_text(["first", "last"])


def test_a_message_with_the_name_of_another_is_shown_as_unverified(
    two: tuple[Page, Page], room: str
) -> None:
    ada, bob = two
    say(ada, "it is me")
    expect(line(bob, "it is me")).not_to_contain_text("unverified")
    publish(bob, f"/chat/room/{room}", {"id": "1", "from": "ada", "text": "it is me, too"})
    for page in two:
        expect(line(page, "it is me, too")).to_contain_text("unverified")
    expect(ada.locator("#lines .own .words")).to_have_text(["it is me"])


def test_members_beyond_those_listed_are_counted(two: tuple[Page, Page]) -> None:
    ada, _ = two
    expect(ada.locator("#members .name")).to_have_text(["ada", "bob"])
    ada.evaluate(DRAW_MEMBERS, [[{"name": "eve", "state": "absent"}], 9800])
    expect(ada.locator("#members li")).to_contain_text(["absent", "and 9800 more"])


def test_a_user_with_two_tabs_is_listed_once_until_both_have_left(
    two: tuple[Page, Page], profile: BrowserContext, server: Server, room: str
) -> None:
    tabs = [profile.new_page() for _ in range(2)]
    for tab in tabs:
        # Names of JavaScript properties are ordinary names.
        join(tab, server.url, "constructor", room=room, reliable=False)
    names = two[0].locator("#members .name")
    expect(names).to_have_text(["ada", "bob", "constructor"])
    leave(tabs[0])
    say(tabs[1], "still here")
    expect(line(two[0], "still here")).to_be_visible()
    expect(names).to_have_text(["ada", "bob", "constructor"])
    leave(tabs[1])
    expect(names).to_have_text(["ada", "bob"])


def test_a_user_who_closes_the_page_is_absent_until_it_is_opened_again(
    profile: BrowserContext, servers: Servers, room: str
) -> None:
    url = servers.with_settings({"max_interval": 1000 * round(times_slower(most=4.0))}).url
    watching, eve = profile.new_page(), profile.new_page()
    for page, name in ((watching, "watching"), (eve, "eve")):
        join(page, url, name, room=room)
    row = watching.locator("#members .member").filter(has_text="eve")
    expect(row).to_contain_text("here")
    eve.close()
    expect(row).to_contain_text("absent")
    join(profile.new_page(), url, "eve", room=room)
    expect(row).to_contain_text("here")


def test_a_room_opened_offline_is_entered_when_the_connection_is_back(
    two: tuple[Page, Page], room: str
) -> None:
    ada, bob = two
    press(bob, "Go offline")
    for page in two:
        page.get_by_label("Another room").fill(f"{room}-b")
        press(page, "Open")
    press(bob, "Go online")
    expect(ada.locator("#members .name")).to_have_text(["ada", "bob"])
    say(ada, "welcome")
    expect(lines(bob)).to_have_text(["welcome"])


def test_a_room_can_be_left(two: tuple[Page, Page], room: str) -> None:
    ada, bob = two
    press(bob, f"Leave {room}")
    expect(ada.locator("#members .name")).to_have_text(["ada"])
    say(ada, "has bob gone?")
    expect(line(ada, "has bob gone?")).to_be_visible()
    bob.reload()
    is_connected(bob)
    expect(bob.locator("#members .name").first).to_be_visible()
    left = bob.locator("#rooms").get_by_role("button", name=room, exact=True)
    expect(left).to_have_count(0)
    bob.get_by_label("Another room").fill(room)
    press(bob, "Open")
    expect(ada.locator("#members .name")).to_have_text(["ada", "bob"])
    expect(lines(bob)).to_have_count(0)
