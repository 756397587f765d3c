"""The charts of the overview: full when it opens, with marks, gaps, and a table of the same."""

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.console.steps import go, look_at
from tests.browser.console.world import World

STEP_MS = 600_000
LIMIT_S = 60.0


def test_charts_have_what_happened_before_the_page_was_opened(page: Page, world: World) -> None:
    world.publish("/orders/paid", *[{"order": n} for n in range(40)])
    ends_at = time.monotonic() + LIMIT_S
    while world.ask("GET", "figures/top?by=channels")["items"][0]["count"] < 40:
        assert time.monotonic() < ends_at
        time.sleep(0.1)
    go(page, "Sessions")
    go(page, "Overview")
    chart = page.locator(".chart", has_text="Messages per second")
    expect(chart.locator("path.line")).to_have_attribute("d", re.compile(r"M\S+ \S+H"))
    expect(page.get_by_role("list", name="Marks")).to_contain_text("start of a server")
    expect(
        page.get_by_text("figures above the charts are those of the last 10 minutes")
    ).to_be_visible()
    expect(page.get_by_text("This console is a session, which counts, too.")).to_be_visible()
    channels = page.locator(".card", has_text="Channels since")
    expect(channels.get_by_role("listitem").first).to_contain_text("/orders/paid")
    expect(page.get_by_role("link", name="Day", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    look_at(page, "#/?charts=live")
    expect(page.get_by_text("figures above the charts are the latest")).to_be_visible()
    look_at(page, "#/?charts=month")
    expect(chart.locator("path.line")).to_have_attribute("d", re.compile(r"M\S+ \S+H"))


@pytest.fixture
def known(page: Page, world: World) -> dict[str, Any]:
    """What the server says of the past, which a test changes."""
    found: dict[str, Any] = world.ask("GET", f"figures/past?step={STEP_MS}")
    return found


def test_a_time_without_a_server_is_a_gap_and_holds_are_marked(
    page: Page, known: dict[str, Any]
) -> None:
    row = known["rows"][-1]
    begin = int(time.time() * 1000) // STEP_MS * STEP_MS - 10 * STEP_MS
    row |= {"starts": 0, "holds": 0, "replays": 0}
    steps = [{**row, "time": begin + n * STEP_MS} for n in (0, 1, 4, 5)]
    steps[1]["holds"] = 2
    steps[2] |= {"published": 66_000, "served_ms": STEP_MS, "starts": 1}
    told = {**known, "since": begin, "until": begin + 6 * STEP_MS, "rows": steps}

    def answer(route: Route) -> None:
        route.fulfill(json=told)

    page.route("**/figures/past?*", answer)
    go(page, "Sessions")
    go(page, "Overview")
    chart = page.locator(".chart", has_text="Messages per second")
    expect(chart.locator("path.mark")).to_have_count(2)
    # Two pieces, with nothing between them.
    line = chart.locator("path.line").get_attribute("d")
    assert line is not None
    assert line.count("M") == 2
    marks = page.get_by_role("list", name="Marks").get_by_role("listitem")
    assert [text.split(" ")[0] for text in marks.all_inner_texts()] == ["start", "hold"]
    page.get_by_text("The charts as a table").click()
    rows = page.get_by_role("region", name="The past by step").locator("tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.nth(1)).to_contain_text("110")
    expect(rows.nth(2)).to_contain_text("hold")
    # The table stays open when its reader sorts it.
    page.get_by_role("columnheader", name="Messages per second").get_by_role("link").click()
    expect(rows.nth(0)).to_contain_text("110")
    page.unroute("**/figures/past?*", answer)


def test_a_past_that_cannot_be_read_leaves_the_rest_of_the_page(
    page: Page, complaints: list[str]
) -> None:
    def refuse(route: Route) -> None:
        error = {"code": "resource.db.unavailable", "message": "the store cannot be read"}
        route.fulfill(status=503, json={"error": error})

    page.route("**/figures/past?*", refuse)
    go(page, "Sessions")
    go(page, "Overview")
    expect(page.get_by_text("The past cannot be shown: the store cannot be read")).to_be_visible()
    expect(page.get_by_text("balanced")).to_be_visible()
    page.unroute("**/figures/past?*", refuse)
    assert all("503" in text for text in complaints)
    complaints.clear()
