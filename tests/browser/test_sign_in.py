"""On a server with a login, the users of the chat sign in, or are told why they cannot."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from holdfast.login.passwords import PasswordFile, User, hashed
from tests.browser.axe import findings
from tests.browser.chatting import go_to, is_connected, lines, press, say
from tests.serving import Server
from tests.slowness import times_slower
from tests.unit.login.signing import SECRET, token

pytestmark = pytest.mark.usefixtures("cometd_js")
PHONE = {"width": 360, "height": 640}
KEPT = """[{...sessionStorage}, {...localStorage}, document.cookie]
    .map((each) => JSON.stringify(each))"""
RIGHTS = """
[[rule]]
who = ["*"]
may = ["all"]
channels = ["/chat/**", "/service/chat/**"]

[[rule]]
who = ["*"]
may_not = ["subscribe"]
channels = ["/chat/room/cellar"]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("login")
    (home / "key").write_bytes(SECRET)
    (home / "rights.toml").write_text(RIGHTS)
    passwords = PasswordFile(home / "passwords")
    for name in ("ada", "grace"):
        passwords.put(User(name, hashed(f"password of {name}")))
    return home


@pytest.fixture(scope="module")
def guarded(home: Path) -> Iterator[Server]:
    """A server that takes passwords and tokens, and warns eight seconds before a login ends."""
    server = Server(
        {
            "login_passwords": str(home / "passwords"),
            "login_keys": str(home / "key"),
            "login_leeway": 0,
            "login_warning": 8000,
            "rights": str(home / "rights.toml"),
        }
    )
    yield server
    server.stop()


@pytest.fixture
def page(profile: BrowserContext, guarded: Server) -> Page:
    page = profile.new_page()
    page.goto(f"{guarded.url}/chat/")
    return page


def by_password(page: Page, name: str, password: str = "") -> None:
    page.get_by_label("User").fill(name)
    page.get_by_label("Password").fill(password or f"password of {name}")
    press(page, "Sign in")


def by_token(page: Page, **claims: Any) -> None:
    page.get_by_label("Token", exact=True).fill(token(**claims))
    press(page, "Sign in")


def leave(page: Page) -> None:
    """Leave the chat, which ends the session and the login."""
    page.locator("#leave").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_enabled()


def join(page: Page, room: str) -> None:
    expect(page.get_by_role("button", name="Join")).to_be_visible()
    page.get_by_label("Room", exact=True).fill(room)
    press(page, "Join")
    is_connected(page)


def test_a_user_signs_in_with_a_password_and_cannot_choose_another_name(
    page: Page, room: str
) -> None:
    expect(page.get_by_label("Room", exact=True)).to_be_hidden()
    by_password(page, "ada")

    name = page.get_by_label("Your name")
    expect(name).to_have_value("ada")
    expect(name).not_to_be_editable()
    join(page, room)
    say(page, "hello")
    expect(lines(page)).to_have_text(["hello"])
    expect(page.locator("#lines strong")).to_have_text(["ada"])


def test_a_user_who_cannot_sign_in_is_told_why(page: Page) -> None:
    problem = page.locator("#sign-in-problem")
    press(page, "Sign in")
    expect(problem).to_have_text("Fill in the form first.")
    by_password(page, "ada", "a guess")
    expect(problem).to_have_text("The user or the password is wrong.")
    page.get_by_label("User").fill("")
    by_token(page, exp=5)
    expect(problem).to_contain_text("The server does not accept this token.")


def test_a_token_is_stored_only_in_its_tab_a_password_nowhere_and_neither_is_shown(
    page: Page, room: str
) -> None:
    mine = token()
    page.get_by_label("Token", exact=True).fill(mine)
    press(page, "Sign in")
    join(page, room)
    in_tab, elsewhere, cookie = page.evaluate(KEPT)
    assert mine in in_tab
    assert mine not in elsewhere + cookie
    for each in page.locator("#wire details").all():
        each.evaluate("details => { details.open = true; }")
    expect(page.locator("#wire pre").first).to_be_attached()
    assert mine not in page.content()
    page.reload()
    is_connected(page)
    leave(page)
    assert mine not in str(page.evaluate(KEPT))

    by_password(page, "ada")
    join(page, room)
    assert "password of ada" not in str(page.evaluate(KEPT)) + page.content()
    page.reload()
    expect(page.get_by_text("does not store passwords")).to_be_visible()
    by_password(page, "ada")
    is_connected(page)


def test_a_login_can_be_renewed_before_it_ends(page: Page, room: str) -> None:
    ends = int(time.time()) + 10
    by_token(page, exp=ends)
    join(page, room)

    expect(page.get_by_text("Your login ends in")).to_be_visible()
    new = page.get_by_role("textbox", name="New token")
    new.fill(token(sub="grace"))
    press(page, "Renew")
    expect(page.locator("#renew-problem")).to_contain_text("does not accept this token")
    new.fill(token())
    press(page, "Renew")
    expect(page.locator("#renew")).to_be_hidden()
    page.wait_for_function("ends => Date.now() > ends", arg=(ends + 2) * 1000)
    say(page, "still here")
    expect(lines(page)).to_have_text(["still here"])


def test_the_end_of_a_login_is_reported_and_the_next_login_continues_the_chat(
    page: Page, other_profile: BrowserContext, guarded: Server, room: str
) -> None:
    by_token(page, exp=int(time.time()) + round(7 * times_slower(most=3.0)))
    join(page, room)
    say(page, "before")
    expect(lines(page)).to_have_text(["before"])

    expect(page.get_by_text("Your login has ended")).to_be_visible()
    grace = other_profile.new_page()
    grace.goto(f"{guarded.url}/chat/")
    by_password(grace, "grace")
    join(grace, room)
    say(grace, "meanwhile")
    expect(lines(grace)).to_have_text(["meanwhile"])

    by_token(page)
    is_connected(page)
    expect(lines(page)).to_have_text(["before", "meanwhile"])


def test_unsent_messages_of_one_user_are_not_sent_by_the_next(page: Page, room: str) -> None:
    by_password(page, "ada")
    join(page, room)
    press(page, "Go offline")
    say(page, "ada's own words")
    expect(page.locator("#unsent")).to_contain_text("ada's own words")
    # The tab is closed without leaving, and another user comes to this browser.
    profile, address = page.context, page.url
    page.close()
    page = profile.new_page()
    page.goto(address)
    by_password(page, "grace")
    join(page, room)
    say(page, "grace's words")
    expect(lines(page)).to_have_text(["grace's words"])
    leave(page)

    by_password(page, "ada")
    join(page, room)
    expect(lines(page)).to_have_text(["grace's words", "ada's own words"])


def test_a_room_that_the_rights_do_not_include_is_named(page: Page) -> None:
    by_password(page, "ada")
    join(page, "lobby")
    page.get_by_label("Another room").fill("cellar")
    press(page, "Open")
    expect(page.locator("#trouble")).to_have_text("Your rights do not include the room cellar.")
    go_to(page, "lobby")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem_in_the_forms_for_logins(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    expect(page.get_by_role("button", name="Sign in")).to_be_enabled()
    by_password(page, "ada", "a guess")
    expect(page.locator("#sign-in-problem")).to_be_visible()
    assert findings(page) == []
    wide = "document.documentElement.scrollWidth - window.innerWidth"
    assert page.evaluate(wide) <= 0
    page.get_by_label("User").fill("")
    page.get_by_label("Password").fill("")
    by_token(page, exp=int(time.time()) + 8)
    join(page, "lobby")
    expect(page.get_by_text("Your login ends in")).to_be_visible()
    assert findings(page) == []
    assert page.evaluate(wide) <= 0


def test_a_user_whom_a_proxy_names_needs_no_credentials(profile: BrowserContext, room: str) -> None:
    server = Server({"login_header": "X-Remote-User", "trusted_proxies": ["127.0.0.1"]})
    try:
        page = profile.new_page()
        page.goto(f"{server.url}/chat/")
        expect(page.get_by_text("The server does not know you")).to_be_hidden()
        press(page, "Sign in")
        expect(page.get_by_text("The server does not know you")).to_be_visible()
        profile.set_extra_http_headers({"X-Remote-User": "ada"})
        page.reload()
        expect(page.get_by_label("Your name")).to_have_value("ada")
        page.get_by_label("Transport").select_option("long-polling")
        join(page, room)
        page.reload()
        is_connected(page)
    finally:
        server.stop()


def test_the_welcome_page_says_that_it_cannot_log_in(
    profile: BrowserContext, guarded: Server
) -> None:
    page = profile.new_page()
    page.goto(guarded.url)
    expect(page.locator("#state")).to_contain_text("The server has a login, and this page has none")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()


def test_a_page_without_a_login_is_told_why_it_gets_no_session(
    profile: BrowserContext, guarded: Server
) -> None:
    page = profile.new_page()
    page.goto(f"{guarded.url}/static/js/example.html")
    expect(page.locator("#error")).to_have_text(re.compile("^403:.*handshake_denied"))
