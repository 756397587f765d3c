"""The documentation works in a browser, under its policy, without anything from elsewhere."""

import gzip
import re

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.axe import findings
from tests.browser.test_landing_page import listen_to
from tests.serving import PACKAGE, Server

DOCS = PACKAGE / "static/docs"
# Of all wheels, in bytes: what is downloaded for a site that most read on another one.
MOST_BYTES = 2_500_000

if not (DOCS / "policy.txt").is_file():
    pytest.skip("make docs builds the documentation", allow_module_level=True)


def test_the_site_is_small() -> None:
    assert sum(each.stat().st_size for each in DOCS.rglob("*") if each.is_file()) < MOST_BYTES
    assert not [*DOCS.rglob("*.map*")]


@pytest.mark.parametrize("path", ["", "reference/settings/", "reference/error-codes/"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (375, "light")])
def test_pages_load_from_their_server_alone_without_complaints(
    path: str, width: int, scheme: str, profile: BrowserContext, server: Server
) -> None:
    page = profile.new_page()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 800})
    complaints, addresses = listen_to(page)
    response = page.goto(f"{server.url}/docs/{path}", wait_until="networkidle")
    assert response is not None
    assert response.ok
    assert [address for address in addresses if not address.startswith(server.url)] == []
    assert complaints == []
    assert findings(page) == []
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0, "it scrolls sideways"


def test_a_reader_finds_a_page_by_a_word_in_it(profile: BrowserContext, server: Server) -> None:
    page = profile.new_page()
    complaints, _ = listen_to(page)
    page.goto(f"{server.url}/docs/")
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("max_queue")
    expect(page.get_by_role("link", name=re.compile("Limits")).first).to_be_visible()
    assert complaints == []


def test_the_list_for_programs_names_pages_that_are_there() -> None:
    text = gzip.decompress((DOCS / "llms.txt.gz").read_bytes()).decode()
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", text, re.MULTILINE)
    assert len(links) > 50
    for link in links:
        assert (DOCS / link / "index.html.gz").is_file(), link


def test_an_operator_tries_a_route_with_a_token(profile: BrowserContext, server: Server) -> None:
    page = profile.new_page()
    complaints, _ = listen_to(page)
    page.goto(f"{server.url}/docs/reference/try/")
    page.get_by_label("Token").fill((server.data / "admin-token").read_text())
    page.get_by_role("button", name="Show the routes").click()
    page.get_by_role("combobox", name="Route").select_option("get /sessions")
    page.get_by_role("textbox", name="prefix").fill("nobody/")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_label("Answer")).to_contain_text('"items": []')
    assert findings(page) == []
    assert complaints == []


def test_an_error_leads_to_its_place(profile: BrowserContext, server: Server) -> None:
    page = profile.new_page()
    page.goto(f"{server.url}/docs/reference/error-codes/#402-session_unknown")
    heading = page.get_by_role("heading", name="402 session_unknown")
    expect(heading).to_be_in_viewport()
