"""The page of docs/tutorials/frameworks.md hears with the cookie that an application gives it."""

import json
import secrets
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Route

from tests.clients.mortal_server import MortalServer
from tests.pages import ROOT, blocks
from tests.unit.login.signing import token

EXAMPLE = ROOT / "docs" / "examples" / "frameworks"
SETTINGS = tomllib.loads((EXAMPLE / "holdfast.toml").read_text("utf-8"))
[ORIGIN] = SETTINGS["allow_origin"]
[SCRIPT] = [
    each for each in blocks(ROOT / "docs" / "tutorials" / "frameworks.md") if each.language == "js"
]
PAGE = """
<!doctype html>
<link rel="icon" href="data:,">
<script>
const heard = [];
const show = (data) => heard.push(data);
SCRIPT
listen();
</script>
"""
CHANNEL = "/users/user-ada/orders"
SHORT_S = 3


class Application:
    """Gives the page a token that soon expires, then one that lasts."""

    def __init__(self, key: bytes, page: str) -> None:
        self._key = key
        self._page = page
        self.given = 0

    def answer(self, route: Route) -> None:
        if route.request.url != f"{ORIGIN}/holdfast-token":
            return route.fulfill(body=self._page, content_type="text/html")
        self.given += 1
        expires = int(time.time()) + (SHORT_S if self.given == 1 else 600)
        given = token(self._key, sub="user-ada", aud="push", exp=expires)
        cookie = f"{SETTINGS['login_cookie']}={given}; Path=/; HttpOnly; SameSite=Lax"
        return route.fulfill(json={"channel": CHANNEL}, headers={"Set-Cookie": cookie})


@pytest.fixture
def key(tmp_path: Path) -> Path:
    key = tmp_path / "token-key"
    key.write_text(secrets.token_hex())
    return key


@pytest.fixture
def mortal(key: Path, tmp_path: Path) -> Iterator[MortalServer]:
    given = {"data": str(tmp_path / "data"), "login_keys": str(key), "login_leeway": 0}
    mortal = MortalServer({**SETTINGS, **given})
    yield mortal
    mortal.stop()


def say(mortal: MortalServer, key: Path, data: object) -> None:
    """Publish as the application does."""
    login = token(key.read_bytes(), sub="shop", groups=["backend"], aud="push")
    body = json.dumps({"channel": CHANNEL, "data": data}).encode()
    headers = {"Authorization": f"Bearer {login}"}
    asked = urllib.request.Request(f"{mortal.alive.url}/publish", body, headers)
    urllib.request.urlopen(asked, timeout=60).close()


def test_a_page_goes_on_with_another_token_when_its_token_has_expired(
    mortal: MortalServer, key: Path, profile: BrowserContext
) -> None:
    script = SCRIPT.at(urlsplit(mortal.alive.url).netloc)
    application = Application(key.read_bytes(), PAGE.replace("SCRIPT", script))
    profile.route(f"{ORIGIN}/**", application.answer)
    page = profile.new_page()
    say(mortal, key, "first")
    page.goto(f"{ORIGIN}/")
    page.wait_for_function("heard.length === 1")
    while application.given < 2:
        page.wait_for_timeout(100)
    say(mortal, key, "second")
    page.wait_for_function("heard.length > 1")
    say(mortal, key, "third")
    page.wait_for_function("heard.includes('third')")
    assert page.evaluate("heard") == ["first", "second", "third"]
    assert application.given == 2
