"""The console of several workers: how each of them is, and which one has a session."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.axe import findings
from tests.browser.console.steps import look_at, sign_in
from tests.browser.console.workers_shown import SENTENCE, close, show_three
from tests.browser.console.world import World


@pytest.fixture(scope="module")
def page(desk: BrowserContext, world: World, complaints: list[str]) -> Iterator[Page]:
    """The console of three workers, one of which does not answer."""
    page = desk.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    show_three(page)
    sign_in(page, world, world.operator, "ann")
    yield page
    close(page)


def test_each_worker_has_a_row_and_the_missing_one_is_named_first(page: Page) -> None:
    look_at(page, "#/now")
    expect(page.get_by_role("status").filter(has_text=SENTENCE)).to_be_visible()
    rows = page.get_by_role("region", name="Shards").get_by_role("row")
    expect(rows).to_have_count(4)
    for each in ("0", "serving", "12 days ago", "4711", "1,204", "available"):
        expect(rows.nth(1)).to_contain_text(each)
    for each in ("2", "silent", "7.3 s"):
        expect(rows.nth(3)).to_contain_text(each)
    expect(rows.nth(3)).not_to_contain_text("null")
    assert findings(page) == []


def test_a_list_of_sessions_and_a_session_say_which_shard_has_it(page: Page) -> None:
    look_at(page, "#/sessions")
    expect(page.get_by_role("columnheader", name="Shard")).to_be_visible()
    look_at(page, "#/sessions/mail/1")
    expect(page.get_by_role("term").filter(has_text="shard")).to_be_visible()


def test_the_table_fits_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 780})
    try:
        look_at(page, "#/now")
        expect(page.get_by_role("region", name="Shards")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        assert findings(page) == []
    finally:
        page.set_viewport_size({"width": 1280, "height": 800})
