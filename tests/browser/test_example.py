"""The example of the extensions works as the documentation shows it."""

from functools import partial

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.pages import ROOT, blocks
from tests.serving import Server


def test_the_documentation_shows_the_code_of_the_example() -> None:
    [block] = [
        each for each in blocks(ROOT / "docs" / "how-to" / "browser.md") if each.language == "js"
    ]
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


@pytest.mark.usefixtures("cometd_js")
def test_of_two_tabs_the_one_that_is_used_goes_on(profile: BrowserContext, server: Server) -> None:
    first, second = profile.new_page(), profile.new_page()
    order = partial(Page.get_by_role, role="button", name="Order", exact=True)
    for page in (first, second):
        page.goto(f"{server.url}/static/js/example.html")
        order(page).click()
        expect(page.get_by_role("listitem")).to_have_count(1)
    expect(first.locator("#error")).to_contain_text("open elsewhere")
    order(first).click()
    expect(first.get_by_role("listitem")).to_have_count(2)
    expect(first.locator("#error")).to_have_text("")
    expect(second.locator("#error")).to_contain_text("open elsewhere")
    for page in (first, second):
        expect(page.locator("#waiting")).to_have_text("0")
