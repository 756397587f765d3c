"""The pages of docs/how-to/react-and-vue.md work, with React and Vue from npm."""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.conftest import HERE
from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import MODULES, require
from tests.pages import ROOT
from tests.serving import environment

EXAMPLE = ROOT / "docs" / "examples" / "components"
SETTINGS = tomllib.loads((EXAMPLE / "holdfast.toml").read_text("utf-8"))
[ORIGIN] = SETTINGS["allow_origin"]
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
REACT = HERE / "components" / "react_modules.js"
FROM_AFAR = {
    "https://esm.sh/react@19.3.1": REACT,
    "https://esm.sh/react-dom@19.3.1/client": REACT,
    "https://unpkg.com/vue@3.5.45/dist/vue.esm-browser.prod.js": (
        MODULES / "vue" / "dist" / "vue.esm-browser.prod.js"
    ),
}

pytestmark = pytest.mark.usefixtures("cometd_js")


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[MortalServer]:
    mortal = MortalServer({**SETTINGS, "data": str(tmp_path / "data")})
    yield mortal
    mortal.stop()


@pytest.fixture(params=["react", "vue"])
def page(request: pytest.FixtureRequest, profile: BrowserContext, mortal: MortalServer) -> Page:
    """The page, from the origin at which docs/how-to/react-and-vue.md serves it."""
    require((MODULES / request.param).is_dir(), "tests/clients/node_modules (make setup-clients)")

    def serve(route: Route) -> None:
        path = EXAMPLE / route.request.url.removeprefix(f"{ORIGIN}/")
        text = path.read_text("utf-8").replace("http://localhost:8080", mortal.alive.url)
        # Both names must lead to one React.
        text = text.replace("https://esm.sh/react-dom@19.3.1/client", "https://esm.sh/react@19.3.1")
        route.fulfill(body=text, content_type=KINDS[path.suffix])

    def serve_from_npm(route: Route) -> None:
        name = route.request.url.partition("/__test__/")[2]
        path = MODULES / name if name else FROM_AFAR[route.request.url]
        headers = {"Access-Control-Allow-Origin": "*"}
        body = path.read_text("utf-8")
        route.fulfill(body=body, content_type="text/javascript", headers=headers)

    profile.route(f"{ORIGIN}/**", serve)
    profile.route(f"{ORIGIN}/__test__/**", serve_from_npm)
    for url in FROM_AFAR:
        profile.route(url, serve_from_npm)
    page = profile.new_page()
    page.goto(f"{ORIGIN}/{request.param}.html")
    return page


def test_the_pages_show_orders_and_prices_through_a_restart(
    mortal: MortalServer, page: Page
) -> None:
    status = page.get_by_role("status").first
    expect(status).to_have_text("connected; 0 waited for this page")
    for item in ("apple", "anvil"):
        mortal.publish("/orders", {"item": item})
    mortal.publish("/prices/apple", 3)
    expect(page.get_by_text("apple: 3")).to_be_visible()
    expect(page.get_by_text("Newest order: anvil")).to_be_visible()
    order = page.get_by_role("listitem").filter(has=page.get_by_role("button"))
    expect(order).to_have_count(2)
    order.filter(has_text="apple").get_by_role("button", name="Packed").click()
    order.filter(has_text="anvil").get_by_role("button", name="No stock").click()
    expect(order).to_have_count(0)
    mortal.stop_and_start()
    mortal.publish("/orders", {"item": "pear"})
    expect(order).to_have_count(1)
    page.reload()
    expect(status).to_have_text("connected; 1 waited for this page")
    expect(order.filter(has_text="pear")).to_have_count(1)


def test_the_pages_ask_a_program(mortal: MortalServer, page: Page) -> None:
    expect(page.get_by_role("status").first).to_contain_text("connected;")
    ask = page.get_by_role("button", name="How many are there?")
    ask.click()
    expect(page.get_by_text("404:/stock:no_responders")).to_be_visible()
    words = [sys.executable, "-m", "holdfast", "respond", "/stock", "--exec", "echo 17"]
    known = environment() | {"HOLDFAST_URL": mortal.alive.url}
    program = subprocess.Popen(words, env=known)
    try:
        answer = page.get_by_role("status").filter(has_text="17")
        while not answer.count():
            ask.click()
            page.wait_for_timeout(200)
    finally:
        program.terminate()
        program.wait()
