"""Dead letters at the console: looked through, taken away, replayed, purged."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.console.steps import answer, go, look_at
from tests.browser.console.world import World

pytestmark = pytest.mark.timeout(60)


def test_dead_letters_are_together_that_failed_alike(page: Page) -> None:
    go(page, "Dead letters")
    group = page.get_by_role("listitem").filter(has_text="total does not match")
    expect(group.get_by_role("img")).to_have_attribute("aria-label", "5 in the last 24 hours")
    group.get_by_role("link").click()
    expect(page.get_by_role("row")).to_have_count(6)
    expect(page.get_by_role("img", name="Deaths by hour")).to_be_visible()
    page.get_by_role("row").nth(1).get_by_role("link").first.click()
    expect(page.get_by_text("What was tried")).to_be_visible()
    expect(page.locator(".difference .added").first).to_contain_text('"order": ')


def test_letters_are_taken_away_as_they_are(page: Page) -> None:
    look_at(page, "#/dead/letters?receiver=stock/1")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export these").click()
    assert download.value.suggested_filename == "dead-letters.ndjson"
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert len(lines) == 5
    assert {json.loads(line)["channel"] for line in lines} == {"/orders/paid"}


def test_letters_are_replayed_after_it_was_shown_what_would_happen(
    page: Page, world: World
) -> None:
    look_at(page, "#/dead/letters?receiver=bills/1&code=user.update.deadMessage")
    page.get_by_role("button", name="Replay these").click()
    answer(page, "Show what would happen", **{"So many go first": "0"})
    expect(page.get_by_role("dialog")).to_contain_text("/orders/cancelled (1)")
    answer(page, "Replay")
    expect(page.get_by_role("heading", name="Replay")).to_contain_text("running")
    expect(page.locator("dl div", has_text=re.compile("^sent"))).to_have_text("sent1")
    world.settle("bills/1")
    expect(page.get_by_role("heading", name="Replay")).to_contain_text("done")
    go(page, "Replays")
    expect(page.get_by_role("row")).to_have_count(2)


def test_letters_are_purged_when_it_was_said_how_many(page: Page, world: World) -> None:
    look_at(page, "#/dead/letters?receiver=stock/1")
    page.get_by_role("button", name="Purge these").click()
    expect(page.get_by_role("dialog")).to_contain_text("Remove 5 letters for good?")
    answer(page, "Remove for good")
    expect(page.get_by_text("5 letters were removed.")).to_be_visible()
    assert world.ask("GET", "dead-letters?receiver=stock/1")["items"] == []
