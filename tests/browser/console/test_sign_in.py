"""Operators sign in to the console with their ordinary login."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from holdfast.login.passwords import PasswordFile, User, hashed
from tests.serving import Server, kill_orphans_in

RIGHTS = """
[administration]
operators = ["ada"]
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("sign-in")
    for name in ("ada", "eve"):
        PasswordFile(home / "passwords").put(User(name, hashed(f"{name}: pässword")))
    (home / "rights.toml").write_text(RIGHTS)
    settings = {"data": str(home / "data"), "login_passwords": str(home / "passwords")}
    server = Server(settings | {"rights": str(home / "rights.toml"), "journal": False})
    yield server.url
    server.stop()
    kill_orphans_in(Path(settings["data"]))


def enter(page: Page, url: str, user: str, password: str) -> None:
    page.goto(f"{url}/console/")
    if user:
        page.get_by_text("Sign in without a token").click()
        page.get_by_label("User", exact=True).fill(user)
        page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_a_login_with_a_role_opens_the_console(desk: BrowserContext, url: str) -> None:
    page = desk.new_page()
    enter(page, url, "ada", "ada: pässword")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(page.get_by_text("operator ada")).to_be_visible()
    assert "pässword" not in page.evaluate("JSON.stringify([sessionStorage, localStorage])")
    assert page.evaluate("sessionStorage.length") == 0
    page.close()


@pytest.mark.parametrize(
    ("user", "password", "why"),
    [
        ("ada", "ada: password", "does not accept this user and password"),
        ("eve", "eve: pässword", "eve has no role in the administration"),
        ("", "", "does not know you"),
    ],
)
def test_a_failed_login_or_one_without_a_role_does_not_open_the_console(
    desk: BrowserContext, url: str, user: str, password: str, why: str
) -> None:
    page = desk.new_page()
    enter(page, url, user, password)
    expect(page.get_by_role("alert")).to_contain_text(why)
    assert page.evaluate("sessionStorage.length") == 0
    page.close()
