"""The console for readers, by keyboard, on phones, for screen readers, and with hostile data."""

from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.axe import findings
from tests.browser.conftest import FORBID_STORAGE
from tests.browser.console.steps import addresses, go, look_at, sign_in
from tests.browser.console.world import World, examined

PHONE = {"width": 390, "height": 800}
PLACES = [
    "Overview",
    "Now",
    "Sessions",
    "Channels",
    "Dead letters",
    "Replays",
    "Messages",
    "Results",
    "Audit",
]


@pytest.fixture(scope="module", autouse=True)
def _something_is_on_every_page(world: World) -> None:
    examined(world)
    world.ask("PUT", "sessions/bills/1/hold", {"reason": "not now"})
    world.ask("POST", "replays", {"filter": {"receiver": "bills/1"}, "dry_run": False})


# Text that must not run when operators look at it.
ATTACK = (
    "<img src=x onerror=\"window.hit='img'\"><script>window.hit='script'</script>"
    "'\"><svg onload=\"window.hit='svg'\"></svg>{{7*7}}${7*7}javascript:window.hit='url'"
    "\u2028</td></script><iframe srcdoc='<script>parent.hit=1</script>'></iframe>"
)


def test_a_reader_sees_the_buttons_for_changes_disabled(desk: BrowserContext, world: World) -> None:
    page = desk.new_page()
    sign_in(page, world, world.reader)
    expect(page.get_by_text("reader: read only")).to_be_visible()
    for address in ("#/sessions/mail/1", "#/dead/letters"):
        look_at(page, address)
        why = page.get_by_text("This needs the role of an operator.")
        expect(why).to_be_visible()
        assert why.locator("..").get_by_role("button").all()
        for button in why.locator("..").get_by_role("button").all():
            if button.inner_text() != "Export these":
                expect(button).to_be_disabled()
    page.close()


def test_the_console_works_in_a_browser_without_storage(desk: BrowserContext, world: World) -> None:
    page = desk.new_page()
    page.add_init_script(FORBID_STORAGE)
    sign_in(page, world, world.operator, "ann")
    go(page, "Sessions")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.close()


def test_hostile_text_in_any_field_of_the_api_stays_text(
    page: Page, world: World, complaints: list[str]
) -> None:
    """Every text in every response is an attack, and the console shows it as text."""

    def poison(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=poisoned(response.json()))

    page.route("**/admin/api/v1/**", poison)
    seen = addresses(world)
    for address in seen:
        look_at(page, address)
        if address not in ("#/", "#/messages"):
            expect(page.locator("#content")).to_contain_text("onerror")
    page.unroute_all(behavior="wait")
    assert page.evaluate("window.hit") is None
    alien = "img:not([src$='icon.svg']), iframe, script:not([src]), [onerror], [onload]"
    assert page.locator(alien).count() == 0
    # Some fields are ids, and requests with the attack as id are refused.
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


def test_hostile_text_of_receivers_and_publishers_stays_text(page: Page, world: World) -> None:
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


def test_the_console_can_be_used_by_keyboard(desk: BrowserContext, world: World) -> None:
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
    tab_to(page, "Hold back delivery")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Hold back delivery")).to_be_focused()
    page.close()


def tab_to(page: Page, text: str) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == text:
            return
    raise AssertionError(f"no way by keyboard to {text}")


@pytest.mark.parametrize(("scheme", "rules"), [("light", ()), ("dark", ("color-contrast",))])
def test_axe_finds_no_serious_problem_on_any_page_of_the_console(
    scheme: Literal["light", "dark"], rules: tuple[str, ...], page: Page, world: World
) -> None:
    page.emulate_media(color_scheme=scheme)
    for address in addresses(world):
        look_at(page, address)
        assert findings(page, *rules) == [], address


def test_dialogs_can_be_opened_and_closed_by_keyboard(page: Page, world: World) -> None:
    [letter] = world.ask("GET", "dead-letters?state=new&limit=1")["items"]
    for address, button, field in (
        (f"#/dead/letter/{letter['id']}", "Edit and send …", "data"),
        (f"#/dead/letters?fingerprint={letter['fingerprint']}", "Assign or note …", "assignee"),
        ("#/dead/letters", "Import …", "file"),
        ("#/dead/letters", "Replay these …", "rate"),
    ):
        look_at(page, address)
        page.locator("#content").focus()
        tab_to(page, button)
        page.keyboard.press("Enter")
        expect(page.locator(f"dialog [name={field}]")).to_be_focused()
        assert findings(page) == [], button
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name=button)).to_be_focused()


def test_an_unknown_address_leads_to_the_overview_or_an_error(
    page: Page, complaints: list[str]
) -> None:
    for address in ("#/constructor", "#/%", "#/%E0%A4%A"):
        look_at(page, address)
        expect(page).to_have_title("Overview · Holdfast")
    look_at(page, "#/sessions/nobody/7")
    expect(page.get_by_text("there is no session nobody/7")).to_be_visible()
    # A page is read again every few seconds, and would complain in the next test.
    look_at(page, "#/")
    assert {each for each in complaints if "404" not in each} == set()
    complaints.clear()


def test_the_console_reports_a_lost_network_and_continues_when_it_is_back(
    page: Page, desk: BrowserContext, complaints: list[str]
) -> None:
    desk.set_offline(True)
    go(page, "Sessions")
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    desk.set_offline(False)
    go(page, "Channels")
    expect(page.get_by_role("row").filter(has_text="/orders/**")).to_be_visible()
    # The browser reports each failed request.
    assert {each for each in complaints if "ERR_INTERNET_DISCONNECTED" not in each} == set()
    complaints.clear()


def test_the_page_before_is_marked_while_the_next_one_loads(page: Page, world: World) -> None:
    look_at(page, "#/sessions")
    content = page.locator("#content")
    held: list[Route] = []
    page.route("**/admin/api/v1/now?*", lambda route: held.append(route), times=1)
    page.get_by_role("link", name="Now", exact=True).click()
    expect(content).to_have_attribute("aria-busy", "true")
    expect(content).to_have_css("opacity", "0.5")
    expect(content.get_by_role("heading", name="Sessions")).to_be_visible()
    held[0].continue_()
    expect(content.get_by_role("heading", name="Now")).to_be_visible()
    expect(content).to_have_css("opacity", "1")
    page.unroute("**/admin/api/v1/now?*")


def test_every_page_of_the_console_fits_a_phone(page: Page, world: World) -> None:
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    long = "w" * 60
    receiver = world.receiver(f"{long}/1", f"/{long}")
    world.publish(f"/{long}", long)
    world.refuse(receiver, long)
    for each in world.ask("GET", "dead-letters/groups")["items"]:
        remark = {"assignee": long, "note": long}
        world.ask("PUT", f"dead-letters/groups/{each['fingerprint']}/remark", remark)
    for address in (*addresses(world), f"#/sessions/{long}/1"):
        look_at(page, address)
        overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 0, f"{address} scrolls sideways"
    assert [place for place in PLACES if not page.get_by_role("link", name=place).count()] == []
