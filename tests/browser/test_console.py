"""The operators' console, walked as operators walk it: one server, one browser."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.axe import findings
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.console_world import World, examined, ordinary, troubled
from tests.serving import Server, end_whoever_lives_in

pytestmark = pytest.mark.timeout(60)

PHONE = {"width": 390, "height": 800}
MOST_BYTES = 150 * 1024
INTERACTIVE_MS = 1000
PLACES = [
    "Overview",
    "Sessions",
    "Channels",
    "Dead letters",
    "Replays",
    "Messages",
    "Results",
    "Audit",
]

# What operators must be able to look at without anything happening.
ATTACK = (
    "<img src=x onerror=\"window.hit='img'\"><script>window.hit='script'</script>"
    "'\"><svg onload=\"window.hit='svg'\"></svg>{{7*7}}${7*7}javascript:window.hit='url'"
    "\u2028</td></script><iframe srcdoc='<script>parent.hit=1</script>'></iframe>"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    data = tmp_path_factory.mktemp("console")
    server = Server({"journal": True, "data": str(data)})
    yield ordinary(World(server.url, data))
    server.stop()
    end_whoever_lives_in(data)


@pytest.fixture(scope="module")
def desk(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser at which an operator sits for a while."""
    with chromium.new_context(reduced_motion="reduce") as context:
        context.set_default_timeout(TIMEOUT_MS)
        yield context


@pytest.fixture(scope="module")
def complaints() -> list[str]:
    return []


@pytest.fixture(scope="module")
def page(desk: BrowserContext, world: World, complaints: list[str]) -> Page:
    """The console with an operator in it, whose name is ann."""
    page = desk.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    sign_in(page, world, world.operator, "ann")
    return page


@pytest.fixture(autouse=True)
def _nothing_went_wrong(complaints: list[str]) -> Iterator[None]:
    yield
    assert complaints == []


def sign_in(page: Page, world: World, token: str, name: str = "") -> None:
    page.goto(f"{world.url}/console/")
    page.get_by_label("Token").fill(token)
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def go(page: Page, place: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=place, exact=True).click()
    expect(page).to_have_title(f"{place} · Holdfast")


def look_at(page: Page, address: str) -> None:
    """By its address, as a colleague may have sent it; what was there is gone first."""
    page.evaluate("content.replaceChildren()")
    if page.evaluate("location.hash") == address:
        page.evaluate("dispatchEvent(new Event('hashchange'))")
    else:
        page.evaluate("(address) => { location.hash = address; }", address)
    page.locator("#content h1").wait_for(state="attached")


def addresses(world: World) -> list[str]:
    """Every page that there is."""
    [letter, *_] = world.ask("GET", "dead-letters?limit=1")["items"]
    replays = world.ask("GET", "replays")["items"]
    return [
        "#/", "#/sessions", "#/sessions/mail/1", "#/channels", "#/dead",
        f"#/dead/letters?fingerprint={letter['fingerprint']}", f"#/dead/letter/{letter['id']}",
        "#/replays", *(f"#/replays/{each['id']}" for each in replays[:1]),
        "#/messages", f"#/messages/{letter['message']}", "#/results", "#/audit",
    ]  # fmt: skip


def answer(page: Page, button: str, **fields: str) -> None:
    """Fill in the dialog, and say yes."""
    dialog = page.get_by_role("dialog")
    for label, value in fields.items():
        dialog.get_by_label(label).fill(value)
    dialog.get_by_role("button", name=button).click()


# Coming in


def test_a_wrong_token_opens_nothing(desk: BrowserContext, world: World) -> None:
    page = desk.new_page()
    page.goto(f"{world.url}/console/")
    page.get_by_label("Token").fill("x" * 43)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("opens nothing")
    assert page.evaluate("sessionStorage.length") == 0
    page.close()


def test_it_is_small_and_asks_nobody_else(desk: BrowserContext, world: World) -> None:
    page = desk.new_page()
    bodies: dict[str, bytes] = {}
    page.on("requestfinished", lambda request: bodies.update({request.url: b""}))
    sign_in(page, world, world.reader)
    expect(page.get_by_text("balanced")).to_be_visible()
    assert [url for url in bodies if not url.startswith(world.url)] == []
    files = [url for url in bodies if "/static/" in url or url.endswith("/console/")]
    size = sum(len(gzip.compress(page.request.get(url).body())) for url in files)
    assert 0 < size <= MOST_BYTES
    navigation = "performance.getEntriesByType('navigation')[0]"
    assert page.evaluate(f"{navigation}.domInteractive") <= INTERACTIVE_MS
    page.close()


def test_what_is_written_is_never_read_as_html(
    page: Page, world: World, complaints: list[str]
) -> None:
    response = page.request.get(f"{world.url}/console/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    for way in ("innerHTML = '<b>'", "insertAdjacentHTML('beforeend', '<b>')"):
        refused = f"(() => {{ try {{ document.body.{way}; }} catch (e) {{ return e.name; }} }})()"
        assert page.evaluate(refused) == "TypeError"
    assert len(complaints) == 2
    complaints.clear()


def test_its_address_without_a_slash_leads_there(page: Page, world: World) -> None:
    assert page.request.get(f"{world.url}/console").url == f"{world.url}/console/"


# The walk


def test_the_overview_moves_while_messages_flow(page: Page, world: World) -> None:
    go(page, "Overview")
    expect(page.get_by_text("balanced")).to_be_visible()
    expect(page.get_by_role("link", name="1 session is held back.")).to_be_visible()
    world.publish("/orders/paid", *[{"order": n} for n in range(40)])
    chart = page.locator(".chart", has_text="Messages a second")
    expect(chart.locator("polyline")).to_have_attribute("points", re.compile(r"\S+ \S+ \S+"))
    go(page, "Sessions")
    go(page, "Overview")
    # What was seen before is still there.
    expect(chart.locator("polyline")).to_have_attribute("points", re.compile(r"\S+ \S+ \S+"))
    accepted = page.locator(".term", has_text="accepted").locator("strong")
    expect(accepted).not_to_have_text("0")


def test_sessions_are_found_and_their_queues_looked_into(page: Page) -> None:
    go(page, "Sessions")
    page.get_by_label("Begins with").fill("mail/")
    page.get_by_label("Delivery").select_option("held back")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="mail/1").click()
    expect(page.get_by_text("the mail relay is down until noon")).to_be_visible()
    entry = page.get_by_role("row").filter(has_text="/orders/shipped").first
    entry.locator("summary").click()
    expect(entry.locator("pre")).to_contain_text('"parcel": "P-00000"')


def test_delivery_is_resumed_and_held_back_again(page: Page, world: World) -> None:
    look_at(page, "#/sessions/mail/1")
    page.get_by_role("button", name="Resume delivery").click()
    expect(page.get_by_text("Delivery goes on.")).to_be_visible()
    page.get_by_role("button", name="Hold delivery back").click()
    answer(page, "Hold back", Reason="still down", Until="2099-01-01T12:00")
    expect(page.get_by_text("still down")).to_be_visible()
    hold = world.ask("GET", "sessions/mail/1")["hold"]
    assert (hold["who"], hold["until"] is not None) == ("operator/ann", True)


def test_a_queue_is_cleared_and_a_session_ended(page: Page, world: World) -> None:
    look_at(page, "#/sessions/mail/2")
    page.get_by_role("button", name="Clear the queue").click()
    answer(page, "Cancel")
    assert world.ask("GET", "sessions/mail/2")["waiting"] > 0
    page.get_by_role("button", name="Clear the queue").click()
    answer(page, "Discard all")
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    page.get_by_role("button", name="End the session").click()
    answer(page, "End the session")
    expect(page.get_by_text("mail/2 has ended.")).to_be_visible()
    expect(page.get_by_role("link", name="mail/2")).to_have_count(0)


def test_channels_have_their_subscribers(page: Page) -> None:
    go(page, "Channels")
    row = page.get_by_role("row").filter(has_text="/orders/**")
    row.get_by_role("link", name="1", exact=True).click()
    expect(page.get_by_role("link", name="stock/1")).to_be_visible()


def test_an_alert_is_shown_and_the_channel_flows_when_somebody_says_so(
    page: Page, world: World
) -> None:
    go(page, "Channels")
    troubled(world)
    expect(page.get_by_role("status").get_by_text("/faulty")).to_be_visible()
    look_at(page, "#/channels")
    expect(page.get_by_role("row").filter(has_text="/faulty")).to_contain_text("held back")
    page.get_by_role("button", name="Let it flow").click()
    expect(page.get_by_text("/faulty flows again.")).to_be_visible()
    assert world.ask("GET", "held-channels")["items"] == []


def test_dead_letters_are_together_that_failed_alike(page: Page) -> None:
    go(page, "Dead letters")
    group = page.get_by_role("listitem").filter(has_text="total does not match")
    expect(group.get_by_role("img")).to_have_attribute("aria-label", "5 in the last 24 hours")
    group.get_by_role("link").click()
    expect(page.get_by_role("row")).to_have_count(6)
    expect(page.get_by_role("img", name="Deaths by hour")).to_be_visible()
    page.get_by_role("row").nth(1).get_by_role("link").first.click()
    expect(page.get_by_text("What was tried")).to_be_visible()
    expect(page.locator(".difference .added").first).to_contain_text('"order": ')


def test_letters_are_taken_away_as_they_are(page: Page) -> None:
    look_at(page, "#/dead/letters?receiver=stock/1")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export these").click()
    assert download.value.suggested_filename == "dead-letters.ndjson"
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert len(lines) == 5
    assert {json.loads(line)["channel"] for line in lines} == {"/orders/paid"}


def test_letters_are_replayed_after_it_was_shown_what_would_happen(
    page: Page, world: World
) -> None:
    look_at(page, "#/dead/letters?receiver=bills/1&code=user.update.deadMessage")
    page.get_by_role("button", name="Replay these").click()
    answer(page, "Show what would happen", **{"So many go first": "0"})
    expect(page.get_by_role("dialog")).to_contain_text("/orders/cancelled (1)")
    answer(page, "Replay")
    expect(page.get_by_role("heading", name="Replay")).to_contain_text("running")
    expect(page.locator("dl div", has_text=re.compile("^sent"))).to_have_text("sent1")
    world.settle("bills/1")
    expect(page.get_by_role("heading", name="Replay")).to_contain_text("done")
    go(page, "Replays")
    expect(page.get_by_role("row")).to_have_count(2)


def test_letters_are_purged_when_it_was_said_how_many(page: Page, world: World) -> None:
    look_at(page, "#/dead/letters?receiver=stock/1")
    page.get_by_role("button", name="Purge these").click()
    expect(page.get_by_role("dialog")).to_contain_text("Remove 5 letters for good?")
    answer(page, "Remove for good")
    expect(page.get_by_text("5 letters were removed.")).to_be_visible()
    assert world.ask("GET", "dead-letters?receiver=stock/1")["items"] == []


def test_a_message_is_followed_from_its_receipt_on(page: Page, world: World) -> None:
    [letter] = world.ask("GET", "dead-letters?channel=/orders/paid&limit=1")["items"]
    go(page, "Messages")
    page.get_by_label("Id of the message").fill(letter["message"])
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("dead for 1")).to_be_visible()
    steps = page.locator(".timeline li")
    expect(steps.filter(has_text="published").first).to_contain_text("receivers")
    expect(steps.filter(has_text="bills/1").last).to_contain_text("user.update.error")
    steps.filter(has_text="bills/1").get_by_role("link", name="the letter").click()
    expect(page.get_by_role("heading", name="Dead letter")).to_be_visible()


def test_what_the_pipeline_found_out_leads_to_messages_and_letters(
    page: Page, world: World, complaints: list[str]
) -> None:
    go(page, "Results")
    expect(page.get_by_text("There are none yet")).to_be_visible()
    # It was asked for in vain.
    complaints.clear()
    examined(world)
    look_at(page, "#/results")
    warm = page.get_by_role("cell", name="3.1 ms").first
    expect(warm).to_have_attribute("title", re.compile("99 % below 3.1 ms"))
    expect(page.get_by_role("row").filter(has_text="78 %")).to_contain_text("5 s")
    page.get_by_role("row").filter(has_text="100 %").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Where is my message?")).to_be_visible()


def test_whoever_changed_something_stands_in_the_audit(page: Page) -> None:
    go(page, "Audit")
    row = page.get_by_role("row").filter(has_text="session.kill")
    expect(row).to_contain_text("operator/ann")
    expect(row).to_contain_text("mail/2")


# For everybody


def test_readers_see_everything_and_change_nothing(desk: BrowserContext, world: World) -> None:
    page = desk.new_page()
    sign_in(page, world, world.reader)
    expect(page.get_by_text("reader: looking only")).to_be_visible()
    for address in ("#/sessions/mail/1", "#/dead/letters"):
        look_at(page, address)
        why = page.get_by_text("This needs the operator's token.")
        expect(why).to_be_visible()
        assert why.locator("..").get_by_role("button").all()
        for button in why.locator("..").get_by_role("button").all():
            expect(button).to_be_disabled()
    page.close()


def test_no_field_can_do_anything(page: Page, world: World, complaints: list[str]) -> None:
    """Whatever the server says, every text of it is an attack, and the console shows it."""

    def poison(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=poisoned(response.json()))

    page.route("**/admin/api/v1/**", poison)
    seen = addresses(world)
    for address in seen:
        look_at(page, address)
        if address not in ("#/", "#/messages"):
            expect(page.locator("#content")).to_contain_text("onerror")
    page.unroute("**/admin/api/v1/**")
    assert page.evaluate("window.hit") is None
    alien = "img:not([src$='icon.svg']), iframe, script:not([src]), [onerror], [onload]"
    assert page.locator(alien).count() == 0
    # Some fields are ids, by which more is asked for in vain.
    assert {each for each in complaints if "400" not in each} == set()
    complaints.clear()


def poisoned(value: Any, name: str = "") -> Any:
    match value:
        case dict():
            attacked = {} if name in ("filter", "options") else {ATTACK: 1}
            known = {key: poisoned(each, key) for key, each in value.items()}
            return known | attacked if name in ("data", "skips", "channels", "detail") else known
        case list():
            return [poisoned(each, name) for each in value]
        case str() if name not in ("cursor",):
            return ATTACK
    return value


def test_what_receivers_and_publishers_write_stays_text(page: Page, world: World) -> None:
    zoe = world.receiver("zoe/1", "/attack")
    world.publish("/attack", {ATTACK: ATTACK}, properties={"name": ATTACK})
    [id] = world.refuse(zoe, ATTACK[:90])
    [letter] = world.ask("GET", "dead-letters?receiver=zoe/1")["items"]
    world.ask("PUT", "sessions/zoe/1/hold", {"reason": ATTACK.replace("\u2028", " ")})
    world.publish("/attack", ATTACK)
    for address in (
        f"#/dead/letter/{letter['id']}", "#/dead", "#/dead/letters", f"#/messages/{id}",
        "#/sessions/zoe/1", "#/audit",
    ):  # fmt: skip
        look_at(page, address)
    assert page.evaluate("window.hit") is None
    world.ask("DELETE", "sessions/zoe/1")


def test_a_keyboard_is_enough(desk: BrowserContext, world: World) -> None:
    page = desk.new_page()
    page.goto(f"{world.url}/console/")
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.type(world.operator)
    page.keyboard.press("Enter")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    tab_to(page, "Sessions")
    page.keyboard.press("Enter")
    expect(page).to_have_title("Sessions · Holdfast")
    expect(page.locator("#content")).to_be_focused()
    tab_to(page, "stock/1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="stock/1")).to_be_visible()
    tab_to(page, "Hold delivery back")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Hold delivery back")).to_be_focused()
    page.close()


def tab_to(page: Page, text: str) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == text:
            return
    raise AssertionError(f"no way by keyboard to {text}")


@pytest.mark.parametrize(("scheme", "rules"), [("light", ()), ("dark", ("color-contrast",))])
def test_it_is_for_all_eyes_and_no_eyes(
    scheme: Literal["light", "dark"], rules: tuple[str, ...], page: Page, world: World
) -> None:
    page.emulate_media(color_scheme=scheme)
    for address in addresses(world):
        look_at(page, address)
        assert findings(page, *rules) == [], address


def test_addresses_of_nowhere_lead_to_the_overview_or_say_so(
    page: Page, complaints: list[str]
) -> None:
    for address in ("#/constructor", "#/%", "#/%E0%A4%A"):
        look_at(page, address)
        expect(page).to_have_title("Overview · Holdfast")
    look_at(page, "#/sessions/nobody/7")
    expect(page.get_by_text("there is no session nobody/7")).to_be_visible()
    assert {each for each in complaints if "404" not in each} == set()
    complaints.clear()


def test_without_the_network_it_says_so_and_goes_on(
    page: Page, desk: BrowserContext, complaints: list[str]
) -> None:
    desk.set_offline(True)
    go(page, "Sessions")
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    desk.set_offline(False)
    go(page, "Channels")
    expect(page.get_by_role("row").filter(has_text="/orders/**")).to_be_visible()
    # The browser tells of each request that went nowhere.
    assert {each for each in complaints if "ERR_INTERNET_DISCONNECTED" not in each} == set()
    complaints.clear()


def test_it_fits_a_phone(page: Page, world: World) -> None:
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    for address in addresses(world):
        look_at(page, address)
        overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 0, f"{address} scrolls sideways"
    assert [place for place in PLACES if not page.get_by_role("link", name=place).count()] == []
