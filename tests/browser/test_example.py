"""The example of the extensions works as the documentation shows it."""

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.pages import ROOT, blocks
from tests.serving import Server


def test_the_documentation_shows_the_code_of_the_example() -> None:
    [block] = [each for each in blocks(ROOT / "docs" / "browser.md") if each.language == "js"]
    assert block.text == (ROOT / "static" / "js" / "example.js").read_text("utf-8")


@pytest.mark.usefixtures("cometd_js")
def test_valid_orders_are_shown_once_and_invalid_ones_are_not(
    profile: BrowserContext, server: Server
) -> None:
    page = profile.new_page()
    page.goto(f"{server.url}/static/js/example.html")
    orders = page.get_by_role("listitem")
    page.get_by_role("button", name="Order", exact=True).click()
    expect(orders).to_have_text(["3 pieces"])
    page.get_by_role("button", name="Order nonsense").click()
    page.get_by_role("button", name="Order", exact=True).click()
    expect(orders).to_have_text(["3 pieces", "3 pieces"])
    expect(page.locator("#waiting")).to_have_text("0")
