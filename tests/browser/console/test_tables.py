"""A message at the console whose way only the tables have."""

from pathlib import Path

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.console.steps import look_at, sign_in
from tests.browser.console.world import World
from tests.pipeline.stored import store_told
from tests.unit.pipeline.events import NODE, START_US, event
from tests.unit.pipeline.told import one_run

MESSAGE = f"#/messages/{NODE}-{START_US * 1000}"


def test_operators_see_the_steps_that_only_tables_have(
    page: Page, world: World, desk: BrowserContext, tmp_path: Path
) -> None:
    published = event("published", 0, 0, channel="/news", sender="pub/1", copies=1)
    end = event("dead", 1, 0, receiver="joe/1", code="user.update.error", letter=7)
    world.lake(store_told(tmp_path, one_run([published, end])).root)
    look_at(page, MESSAGE)
    expect(page.locator("#content")).to_contain_text("No message with this id is known")
    page.get_by_role("button", name="Look in the tables").click()
    expect(page.get_by_text("The tables have 2 more events.")).to_be_visible()
    expect(page.locator(".timeline li")).to_have_count(2)
    expect(page.locator(".timeline li").last).to_contain_text("user.update.error")
    expect(page.locator("#content")).to_contain_text("Received")
    expect(page.get_by_role("button", name="Look in the tables")).to_be_hidden()
    reader = desk.new_page()
    sign_in(reader, world, world.reader)
    look_at(reader, MESSAGE)
    expect(reader.get_by_text("Older ones are in tables")).to_be_visible()
    expect(reader.get_by_role("button", name="Look in the tables")).to_be_hidden()
    reader.close()
