"""The heads of all tables of the console, which sort them."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from holdfast.store.format.figure_records import COUNTS, LENGTHS
from tests.browser.console.steps import addresses, look_at, sign_in
from tests.browser.console.workers_shown import close, rows, show_three
from tests.browser.console.world import World, examined

# Columns of buttons and links, and of what has no order.
NO_DATA = {"", "Details"}
STEP_MS = 600_000
# What is known of nothing.
UNKNOWN = {"", "\N{EN DASH}"}
# The hours of latencies are many, and all alike.
ENOUGH = 9
# For each table, its heads: the name, how it sorts now, and where it leads; and the texts below it.
LOOK = """() => [...document.querySelectorAll("#content table")].map((table) => {
    const rows = [...table.querySelectorAll("tbody tr")];
    return [...table.querySelectorAll("thead th")].map((head, n) => ({
        name: head.textContent, way: head.ariaSort,
        id: head.querySelector("a")?.id, link: head.querySelector("a")?.hash,
        texts: rows.map((row) => row.children[n].textContent),
    }));
})"""
Head = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _something_is_on_every_page(world: World, page: Page) -> None:
    examined(world)
    for name in ("till/1", "till/2"):
        world.receiver(name, "/prices")
    world.ask("PUT", "sessions/bills/1/hold", {"reason": "not now"})
    for receiver in ("bills/1", "stock/1"):
        world.ask("POST", "replays", {"filter": {"receiver": receiver}, "dry_run": False})
    # What is stuck now changes from second to second.
    told = {**world.ask("GET", "now"), "shards": {"items": rows(), "more": 0}}
    page.route("**/admin/api/v1/now?*", lambda route: route.fulfill(json=told))
    # A new server has no past yet, or one row of it.
    past = world.ask("GET", f"figures/past?step={STEP_MS}")
    past |= {"rows": [known_row(past, number) for number in range(1, 4)]}
    page.route("**/admin/api/v1/figures/past?*", lambda route: route.fulfill(json=past))


def known_row(past: dict[str, Any], number: int) -> dict[str, Any]:
    """What a step counted, of which nothing is as in the step before."""
    buckets = {name: [0] * number + [1] + [0] * 9 for name in past["bounds"]}
    counts = dict.fromkeys([*COUNTS, *LENGTHS], number)
    begin = past["since"] // STEP_MS * STEP_MS
    return {
        **buckets, **counts, "holds": number % 2, "replays": 0,
        "time": begin + number * STEP_MS, "served_ms": STEP_MS,
    }  # fmt: skip


def by_column(page: Page) -> Iterator[list[Head | None]]:
    """The first heads of all tables with data, the second ones, and so on."""
    tables = [
        [each for each in heads if each["name"] not in NO_DATA] for heads in page.evaluate(LOOK)
    ]
    yield from map(list, zip_longest(*tables))


def asked_by(head: Head) -> tuple[str, str]:
    """Return the name and the order of its table."""
    name = head["id"].partition(".")[0]
    return name, dict(parse_qsl(head["link"].partition("?")[2]))[name]


def sort_by(page: Page, place: str, heads: list[Head | None]) -> None:
    """Sort all tables of a page, each by one of its columns."""
    asked = dict(asked_by(each) for each in heads if each)
    look_at(page, f"{place}?{urlencode(asked)}")


# It looks at each page twice, which takes over two minutes with a tenth of a processor.
@pytest.mark.timeout(400)
def test_every_column_with_data_sorts_its_table_both_ways(page: Page, world: World) -> None:
    shown = [each.partition("?")[0] for each in addresses(world)]
    places = page.get_by_role("navigation").get_by_role("link").all()
    assert {(each.get_attribute("href") or "").partition("?")[0] for each in places} <= {*shown}
    wrong = list[str]()
    for place in shown:
        look_at(page, place)
        for number, heads in enumerate(by_column(page)):
            wrong += [f"{place} {each['name']}" for each in heads if each and not each["link"]]
            if number < ENOUGH and not wrong:
                wrong += unsorted(page, place, number)
    assert wrong == []


def test_a_head_is_used_by_keyboard_and_keeps_the_focus_and_the_place(page: Page) -> None:
    look_at(page, "#/results")
    region = page.get_by_role("region", name="Refused publishes")
    head = region.get_by_role("columnheader", name="Refused")
    link = head.get_by_role("link")
    link.scroll_into_view_if_needed()
    link.focus()
    for way in ("descending", "ascending"):
        before = page.evaluate("scrollY")
        assert before > 0
        page.keyboard.press("Enter")
        expect(head).to_have_attribute("aria-sort", way)
        expect(link).to_be_focused()
        assert page.evaluate("scrollY") == before
    look_at(page, "#/now")
    expect(page.locator("#content")).to_be_focused()
    assert page.evaluate("scrollY") == 0


def test_a_table_of_cards_is_sorted_by_a_choice_that_keeps_the_focus(page: Page) -> None:
    size = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 800})
    look_at(page, "#/sessions/stock/1")
    choice = page.get_by_label("Sort by")
    choice.focus()
    choice.select_option("Message, descending")
    expect(page.locator("thead th").first).to_have_attribute("aria-sort", "descending")
    expect(choice).to_be_focused()
    expect(choice).to_have_value("-id")
    texts = page.locator("tbody td[data-name=Message]").all_inner_texts()
    assert texts == sorted(texts, reverse=True)
    assert len({*texts}) > 1
    assert size is not None
    page.set_viewport_size(size)


def test_sessions_of_several_workers_are_sorted_by_their_shard(
    desk: BrowserContext, world: World
) -> None:
    page = desk.new_page()
    show_three(page)
    sign_in(page, world, world.operator)
    look_at(page, "#/sessions")
    head = page.get_by_role("columnheader", name="Shard")
    with page.expect_request("**/sessions?sort=-shard&**"):
        head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    close(page)


def unsorted(page: Page, place: str, number: int) -> list[str]:
    """Sort all tables by their column with this number; return which have stayed as they were."""
    told = []
    for _ in range(2):
        sort_by(page, place, [*by_column(page)][number])
        told.append([*by_column(page)][number])
    wrong = []
    for one, other in zip(*told, strict=True):
        if one is None or other is None:
            continue
        is_both_ways = {one["way"], other["way"]} == {"ascending", "descending"}
        differ = len({*one["texts"]} - UNKNOWN) > 1
        if not is_both_ways or (differ and one["texts"] == other["texts"]):
            wrong.append(f"{place} {one['name']}: {one['way']}, {other['way']}")
    return wrong
