"""The operators' console, used as operators use it: one server, one browser."""

import contextlib
import gzip
import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Error, Page, Route, TimeoutError, expect

from holdfast.pipeline.reports.columns import COLUMNS
from tests.browser.console.steps import answer, go, look_at, sign_in
from tests.browser.console.world import World, examined, troubled
from tests.pipeline.stored import store_events
from tests.unit.pipeline.events import NODE, START_US, event
from tests.unit.pipeline.framed_events import one_run

MOST_BYTES = 150 * 1024


# Signing in


def test_a_wrong_token_is_refused_and_not_stored(desk: BrowserContext, world: World) -> None:
    page = desk.new_page()
    page.goto(f"{world.url}/console/")
    page.get_by_label("Token").fill("x" * 43)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not accept")
    assert page.evaluate("sessionStorage.length") == 0
    page.close()


def test_the_console_is_small_and_loads_nothing_from_other_servers(
    desk: BrowserContext, world: World
) -> None:
    page = desk.new_page()
    bodies: dict[str, bytes] = {}
    page.on("requestfinished", lambda request: bodies.update({request.url: b""}))
    sign_in(page, world, world.reader)
    expect(page.get_by_text("balanced")).to_be_visible()
    assert [url for url in bodies if not url.startswith(world.url)] == []
    files = [url for url in bodies if "/static/" in url or url.endswith("/console/")]
    size = sum(len(gzip.compress(page.request.get(url).body())) for url in files)
    assert 0 < size <= MOST_BYTES
    page.close()


def test_the_policy_of_the_console_prevents_text_from_becoming_html(
    page: Page, world: World, complaints: list[str]
) -> None:
    response = page.request.get(f"{world.url}/console/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    for way in ("innerHTML = '<b>'", "insertAdjacentHTML('beforeend', '<b>')"):
        refused = f"(() => {{ try {{ document.body.{way}; }} catch (e) {{ return e.name; }} }})()"
        assert page.evaluate(refused) == "TypeError"
    assert len(complaints) == 2
    complaints.clear()


def test_the_address_without_a_slash_leads_to_the_console(page: Page, world: World) -> None:
    assert page.request.get(f"{world.url}/console").url == f"{world.url}/console/"


# The walk


def test_the_overview_shows_live_figures_and_keeps_them_between_visits(
    page: Page, world: World
) -> None:
    look_at(page, "#/?charts=live")
    expect(page.get_by_text("balanced")).to_be_visible()
    expect(page.get_by_role("link", name="1 session is held back.")).to_be_visible()
    world.publish("/orders/paid", *[{"order": n} for n in range(40)])
    chart = page.locator(".chart", has_text="Messages per second")
    expect(chart.locator("polyline")).to_have_attribute("points", re.compile(r"\S+ \S+ \S+"))
    go(page, "Sessions")
    look_at(page, "#/?charts=live")
    # The chart still has the figures from before.
    expect(chart.locator("polyline")).to_have_attribute("points", re.compile(r"\S+ \S+ \S+"))
    accepted = page.locator(".term", has_text="accepted").locator("strong")
    expect(accepted).not_to_have_text("0")


def test_what_is_stuck_now_is_said_in_a_sentence_and_leads_to_the_session(
    page: Page, world: World
) -> None:
    go(page, "Now")
    sentence = page.get_by_role("main").get_by_role("status").first
    expect(sentence).to_have_text(world.ask("GET", "now")["sentence"])
    held = page.get_by_role("region", name="Sessions that are held back")
    expect(held).to_contain_text("the mail relay is down until noon")
    work = page.get_by_role("region", name="Work queues")
    expect(work.get_by_role("link", name="/jobs/pictures")).to_be_visible()
    held.get_by_role("link", name="mail/1").click()
    expect(page.get_by_role("heading", name="mail/1")).to_be_visible()


def test_a_session_is_found_and_its_queue_is_shown(page: Page) -> None:
    go(page, "Sessions")
    page.get_by_label("Begins with").fill("mail/")
    page.get_by_label("Delivery").select_option("held back")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="mail/1").click()
    expect(page.get_by_text("the mail relay is down until noon")).to_be_visible()
    entry = page.get_by_role("row").filter(has_text="/orders/shipped").first
    entry.locator("summary").click()
    expect(entry.locator("pre")).to_contain_text('"parcel": "P-00000"')


def test_a_list_is_sorted_by_the_column_that_was_chosen(page: Page, world: World) -> None:
    def keys() -> list[str]:
        return page.locator("tbody tr td:first-child").all_inner_texts()

    def asked(sort: str) -> list[str]:
        return [each["key"] for each in world.ask("GET", f"sessions?limit=50&sort={sort}")["items"]]

    look_at(page, "#/sessions")
    column = page.get_by_role("columnheader", name="Waiting")
    for sort, way in (("-waiting", "descending"), ("waiting", "ascending")):
        column.get_by_role("link").click()
        expect(column).to_have_attribute("aria-sort", way)
        assert keys() == asked(sort)
    page.get_by_role("columnheader", name="Session").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Session")).to_have_attribute(
        "aria-sort", "ascending"
    )
    assert keys() == asked("key")


def test_replays_are_sorted_where_they_are_shown(page: Page) -> None:
    counts = {"total": 0, "sent": 0, "acked": 0, "died_again": 0}
    about = {"state": "done", "who": "ann", "started": 1, **counts}
    told = [{**about, "id": f"r{n}", "total": n, "started": n or None} for n in (2, 0, 10)]
    page.route("**/admin/api/v1/replays", lambda route: route.fulfill(json={"items": told}))
    totals = page.locator("tbody td[data-name=Letters]")
    look_at(page, "#/replays")
    expect(totals).to_have_text(["2", "0", "10"])
    page.get_by_role("columnheader", name="Letters").get_by_role("link").click()
    expect(totals).to_have_text(["10", "2", "0"])
    # What has no value comes last, both ways.
    for sort in ("started", "-started"):
        look_at(page, f"#/replays?sort={sort}")
        expect(totals.last).to_have_text("0")
    page.unroute_all(behavior="wait")


def test_an_operator_compares_25_rows_on_a_screen(page: Page, world: World) -> None:
    for number in range(1, 31):
        world.receiver(f"row{number}/1")
    usual = page.viewport_size
    assert usual is not None
    page.set_viewport_size({"width": 1200, "height": 900})
    look_at(page, "#/sessions?prefix=row")
    expect(page.locator("tbody tr")).to_have_count(30)
    page.get_by_role("button", name="Compact").click()
    shown = "rows => rows.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length"
    fitting = page.locator("tbody tr").evaluate_all(shown)
    page.get_by_role("button", name="Compact").click()
    page.set_viewport_size(usual)
    assert fitting >= 25


@pytest.mark.parametrize("width", [1280, 390])
def test_tables_are_compact_if_the_operator_wants_it_from_then_on(page: Page, width: int) -> None:
    usual = page.viewport_size
    assert usual is not None
    page.set_viewport_size({"width": width, "height": 800})
    look_at(page, "#/sessions")
    row = page.locator("tbody tr").first
    before = row.bounding_box()
    page.get_by_role("button", name="Compact").click()
    after = row.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] < before["height"] * 0.8
    page.reload()
    expect(page.get_by_role("button", name="Compact", pressed=True)).to_be_visible()
    page.get_by_role("button", name="Compact").click()
    expect(page.get_by_role("button", name="Compact", pressed=False)).to_be_visible()
    page.set_viewport_size(usual)


def test_delivery_to_a_session_can_be_resumed_and_held_back(page: Page, world: World) -> None:
    look_at(page, "#/sessions/mail/1")
    page.get_by_role("button", name="Resume delivery").click()
    expect(page.get_by_text("Delivery resumed.")).to_be_visible()
    page.get_by_role("button", name="Hold back delivery").click()
    answer(page, "Hold back", Reason="still down", Until="2099-01-01T12:00")
    expect(page.get_by_text("still down")).to_be_visible()
    hold = world.ask("GET", "sessions/mail/1")["hold"]
    assert (hold["who"], hold["until"] is not None) == ("operator/ann", True)


def test_buttons_change_when_another_operator_acts(page: Page, world: World) -> None:
    look_at(page, "#/sessions/mail/1")
    expect(page.get_by_role("button", name="Resume delivery")).to_be_visible()
    world.ask("DELETE", "sessions/mail/1/hold")
    hold = page.get_by_role("button", name="Hold back delivery")
    expect(hold).to_be_visible()
    hold.click()
    answer(page, "Hold back", Reason="the relay rests")
    expect(page.get_by_text("the relay rests")).to_be_visible()


def test_sessions_are_found_by_further_conditions(page: Page) -> None:
    look_at(page, "#/sessions")
    expect(page.get_by_label("Not seen since")).to_be_hidden()
    page.get_by_text("More conditions").click()
    page.get_by_label("Client").select_option("unconnected")
    page.get_by_label("Not seen since").fill("2001-02-03T04:05")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("No matching sessions: ")).to_be_visible()
    # The chosen conditions are shown.
    expect(page.get_by_label("Not seen since")).to_have_value("2001-02-03T04:05")
    page.get_by_label("Not seen since").fill("")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("link", name="mail/1")).to_be_visible()


def test_a_queue_can_be_cleared_and_a_session_ended(page: Page, world: World) -> None:
    look_at(page, "#/sessions/mail/2")
    page.get_by_role("button", name="Clear the queue").click()
    answer(page, "Cancel")
    assert world.ask("GET", "sessions/mail/2")["waiting"] > 0
    page.get_by_role("button", name="Clear the queue").click()
    answer(page, "Discard all")
    expect(page.get_by_text("The queue is empty.")).to_be_visible()
    page.get_by_role("button", name="End the session").click()
    answer(page, "End the session")
    expect(page.get_by_text("mail/2 has ended.")).to_be_visible()
    expect(page.get_by_role("link", name="mail/2")).to_have_count(0)


def test_the_queue_of_a_subject_is_shown_and_emptied(page: Page, world: World) -> None:
    go(page, "Subjects")
    row = page.get_by_role("row").filter(has_text="joe")
    expect(row.get_by_role("cell").nth(1)).to_have_text("2")
    row.get_by_role("link", name="joe").click()
    expect(page.get_by_role("row").filter(has_text="/service/ptp")).to_have_count(2)
    expect(page.get_by_text("The subject has no session:")).to_be_visible()

    page.get_by_role("button", name="Empty the queue").click()
    answer(page, "Discard all")
    expect(page.get_by_text("Queue emptied.")).to_be_visible()
    expect(page.get_by_text("The queue is empty.")).to_be_visible()
    assert world.ask("GET", "subjects")["items"] == []
    world.receiver("joe/1", "/letters")
    expect(page.get_by_role("link", name="joe/1")).to_be_visible()


def test_delayed_messages_are_shown_by_due_time_and_cancelled(page: Page, world: World) -> None:
    go(page, "Delayed")
    rows = page.get_by_role("row").filter(has_text="/orders/reminded")
    expect(rows).to_have_count(2)
    first, last = world.ask("GET", "delayed")["items"]
    assert [each["data"]["after"] for each in (first, last)] == [1, 2]
    rows.nth(0).get_by_role("button", name="Cancel").click()
    answer(page, "Cancel the message")
    expect(page.get_by_text("Message cancelled.")).to_be_visible()
    expect(rows).to_have_count(1)
    assert [each["id"] for each in world.ask("GET", "delayed")["items"]] == [last["id"]]


def test_a_work_queue_is_shown_with_its_receivers_and_emptied(page: Page, world: World) -> None:
    go(page, "Work queues")
    row = page.get_by_role("row").filter(has_text="/jobs/pictures")
    expect(row.get_by_role("cell").nth(1)).to_have_text("3")
    expect(row.get_by_role("cell").nth(4)).to_have_text("0")
    expect(row.get_by_role("link", name="/jobs/pictures")).to_be_visible()
    look_at(page, "#/channels/%2Fjobs%2Fpictures")
    page.get_by_text("in its work queue").locator("..").get_by_role("link", name="3").click()
    expect(page.get_by_text("No session has subscribed to this channel:")).to_be_visible()
    work = page.get_by_role("region", name="Queue").get_by_role("row")
    expect(work).to_have_count(4)

    painter = world.receiver("painter/1", "/jobs/*")
    world.take(painter)
    has = page.get_by_role("row").filter(has_text="painter/1").get_by_role("cell")
    expect(has.nth(3)).to_have_text("3")
    expect(page.get_by_text("The queue is empty.")).to_be_visible()
    painter.send("/meta/unsubscribe", subscription="/jobs/*")
    painter.handshake(ext={"ack": True, "delivery": {"session": "painter/1"}})

    expect(work).to_have_count(4)
    page.get_by_role("button", name="Empty the queue").click()
    answer(page, "Discard all")
    expect(page.get_by_text("Queue emptied.")).to_be_visible()
    assert world.ask("GET", "work-queues")["items"] == []


def test_a_change_that_the_store_does_not_have_yet_says_so(page: Page) -> None:
    def lack(route: Route) -> None:
        answer = route.fetch()
        if route.request.method == "GET":
            route.fulfill(response=answer)
        else:
            route.fulfill(response=answer, json={**answer.json(), "unstored": True})

    look_at(page, "#/channels/%2Fnews")
    page.route("**/held-channels*", lack)
    page.get_by_role("button", name="Hold back the channel").click()
    answer(page, "Hold back", Reason="the newsroom moves")
    more = "The store is unavailable and does not have this yet: a kill of the server undoes it."
    expect(page.get_by_text(f"/news is held back. {more}")).to_be_visible()
    go(page, "Channels")
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text(f"/news was released. {more}")).to_be_visible()
    page.unroute_all(behavior="wait")


def test_a_channel_is_held_back_by_an_operator_and_released(page: Page, world: World) -> None:
    look_at(page, "#/channels/%2Fnews")
    page.get_by_role("button", name="Hold back the channel").click()
    answer(page, "Hold back", Reason="the newsroom moves", Until="2099-01-01T12:00")
    expect(page.get_by_text("Held back by operator/ann")).to_contain_text("the newsroom moves")
    [hold] = world.ask("GET", "held-channels")["items"]
    assert (hold["channel"], hold["who"]) == ("/news", "operator/ann")
    go(page, "Channels")
    expect(page.locator(".held")).to_contain_text("Held back by operator/ann")
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("/news was released.")).to_be_visible()
    assert world.ask("GET", "held-channels")["items"] == []
    look_at(page, "#/channels/%2Forders%2F**")
    expect(page.get_by_role("heading", name="/orders/**")).to_be_visible()
    expect(page.get_by_role("button", name="Hold back the channel")).to_have_count(0)


@pytest.mark.parametrize("name", ["constructor", "__proto__"])
def test_names_of_javascript_properties_are_ordinary_names(page: Page, name: str) -> None:
    look_at(page, f"#/subjects/{name}")
    expect(page.get_by_text("The queue is empty.")).to_be_visible()
    look_at(page, f"#/work/%2Fjobs%2F{name}")
    expect(page.get_by_role("heading", name=f"/jobs/{name}")).to_be_visible()
    expect(page.get_by_text("The queue is empty.")).to_be_visible()
    look_at(page, f"#/channels/%2F{name}")
    expect(page.get_by_text("This channel is not a topic.")).to_be_visible()


def test_a_channel_is_shown_with_its_subscribers(page: Page) -> None:
    go(page, "Channels")
    row = page.get_by_role("row").filter(has_text="/orders/**")
    row.get_by_role("link", name="1", exact=True).click()
    expect(page.get_by_role("link", name="stock/1")).to_be_visible()


def test_dead_letters_of_channels_are_counted(page: Page, world: World) -> None:
    go(page, "Channels")
    letters = world.ask("GET", "dead-letters?channel=/orders/cancelled")["items"]
    count = page.get_by_role("row").filter(has_text="/orders/cancelled").get_by_role("cell").nth(3)
    expect(count).to_have_text(str(len(letters)))
    none = page.get_by_role("row").filter(has_text="/orders/shipped").get_by_role("cell").nth(3)
    expect(none).to_have_text("0")
    expect(none.get_by_role("link")).to_have_count(0)
    count.get_by_role("link").click()
    expect(page.get_by_role("row")).to_have_count(len(letters) + 1)


def test_the_badge_of_a_session_says_that_its_client_has_left(page: Page, world: World) -> None:
    meter = world.receiver("meter/1", "/power")
    meter.send("/meta/disconnect")
    look_at(page, "#/sessions?prefix=meter/")
    row = page.get_by_role("row").filter(has_text="meter/1")
    expect(row.get_by_text("away", exact=True)).to_be_visible()
    expect(row.get_by_text("alive")).to_have_count(0)
    look_at(page, "#/sessions/meter/1")
    expect(page.get_by_role("heading", name="meter/1 away")).to_be_visible()
    ending = {"delivery": {"end": True, "discard": True}}
    world.receiver("meter/1").send("/meta/disconnect", ext=ending)


def test_a_topic_is_shown_with_its_history_and_erased(page: Page, world: World) -> None:
    look_at(page, "#/channels/%2Fprices")
    expect(page.get_by_role("heading", name="/prices ALIVE")).to_be_visible()
    expect(page.get_by_text("only when it is erased")).to_be_visible()
    # Nobody has subscribed, so it is not in the list of channels.
    letters = page.get_by_role("main").get_by_text("dead letters").locator("..")
    expect(letters).to_have_text("dead letters0")
    newest = page.get_by_role("region", name="History").get_by_role("row").nth(1)
    newest.locator("summary").click()
    expect(newest.locator("pre")).to_contain_text('"tea": 2.75')
    reader = world.receiver("till/1", "/prices")
    expect(page.get_by_role("link", name="till/1")).to_be_visible()

    page.get_by_role("button", name="Erase the topic").click()
    answer(page, "Erase")
    expect(page.get_by_text("/prices was erased.")).to_be_visible()
    expect(page.get_by_text("This channel is not a topic.")).to_be_visible()
    expect(page.get_by_text("The channel keeps no messages:")).to_be_visible()
    expect(page.get_by_role("link", name="till/1")).to_have_count(0)
    assert world.ask("GET", "topics?prefix=/prices")["items"] == []
    reader.send("/meta/disconnect")


def test_a_channel_that_the_guard_holds_is_reported_and_can_be_released(
    page: Page, world: World
) -> None:
    go(page, "Channels")
    troubled(world)
    expect(page.get_by_role("status").get_by_text("/faulty")).to_be_visible()
    look_at(page, "#/channels")
    expect(page.get_by_role("row").filter(has_text="/faulty")).to_contain_text("held back")
    page.get_by_role("row").get_by_role("link", name="/faulty").click()
    expect(page.get_by_text("Held back", exact=False).first).to_be_visible()
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("/faulty was released.")).to_be_visible()
    assert world.ask("GET", "held-channels")["items"] == []
    go(page, "Overview")
    warned = page.get_by_role("region").or_(page.locator("section")).filter(has_text="Warnings")
    expect(warned.first).to_contain_text("/faulty")
    expect(
        page.get_by_role("link", name=re.compile("messages died in the last hour"))
    ).to_be_visible()


def test_the_steps_of_a_message_are_shown_and_lead_to_its_letter(page: Page, world: World) -> None:
    [letter] = world.ask("GET", "dead-letters?channel=/orders/paid&limit=1")["items"]
    go(page, "Messages")
    page.get_by_label("Message id").fill(letter["message"])
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("a dead letter of 2 receivers")).to_be_visible()
    steps = page.locator(".timeline li")
    expect(steps.filter(has_text="published").first).to_contain_text("receivers")
    expect(steps.filter(has_text="bills/1").last).to_contain_text("user.update.error")
    steps.filter(has_text="bills/1").get_by_role("link", name="the letter").click()
    expect(page.get_by_role("heading", name="Dead letter")).to_be_visible()


def test_what_spans_a_wide_window_begins_where_its_content_does(page: Page) -> None:
    before = page.viewport_size
    for width in (1920, 1200, 375):
        page.set_viewport_size({"width": width, "height": 900})
        look_at(page, "#/dead")
        left = "each => each.getBoundingClientRect().left"
        heading = page.locator("#content h1").evaluate(left)
        assert page.locator(".bar > *").first.evaluate(left) == pytest.approx(heading, abs=1)
    assert before is not None
    page.set_viewport_size(before)


def test_operators_but_not_readers_can_look_for_steps_in_the_tables(
    page: Page, world: World, desk: BrowserContext, tmp_path: Path
) -> None:
    published = event("published", 0, 0, channel="/news", sender="pub/1", copies=1)
    end = event("dead", 1, 0, receiver="joe/1", code="user.update.error", letter=7)
    world.lake(store_events(tmp_path, one_run([published, end])).root)
    message = f"#/messages/{NODE}-{START_US * 1000}"
    look_at(page, message)
    expect(page.locator("#content")).to_contain_text("No message with this id is known")
    page.get_by_role("button", name="Look in the tables").click()
    expect(page.get_by_text("The tables have 2 more events.")).to_be_visible()
    expect(page.locator(".timeline li")).to_have_count(2)
    expect(page.locator(".timeline li").last).to_contain_text("user.update.error")
    expect(page.locator("#content")).to_contain_text("Received")
    expect(page.get_by_role("button", name="Look in the tables")).to_be_hidden()
    reader = desk.new_page()
    sign_in(reader, world, world.reader)
    look_at(reader, message)
    expect(reader.get_by_text("Older ones are in tables")).to_be_visible()
    expect(reader.get_by_role("button", name="Look in the tables")).to_be_hidden()
    reader.close()


def test_results_of_the_pipeline_are_shown_and_lead_to_messages(page: Page, world: World) -> None:
    go(page, "Results")
    expect(page.get_by_text("No results yet")).to_be_visible()
    examined(world)
    look_at(page, "#/results")
    violations = page.get_by_role("region", name="Findings of the audit")
    expect(violations.get_by_role("row").filter(has_text="never_handed")).to_contain_text("2")
    outcomes = page.get_by_role("region", name="Outcomes")
    expect(outcomes.get_by_role("row").filter(has_text="/orders/paid")).to_contain_text("77 %")
    warm = page.get_by_role("cell", name="3.1 ms").first
    expect(warm).to_have_attribute("title", re.compile("p99 3.1 ms"))
    expect(page.get_by_role("row").filter(has_text="78 %")).to_contain_text("5 s")
    expect(page.get_by_role("row").filter(has_text="order * of * is")).to_contain_text("/orders/*")
    page.get_by_role("row").filter(has_text="100 %").get_by_role(
        "link", name=re.compile(r"-\d{19}$")
    ).click()
    expect(page.get_by_role("heading", name="Where is my message?")).to_be_visible()


def test_each_table_of_results_is_sorted_by_itself(page: Page) -> None:
    look_at(page, "#/results")
    outcomes = page.get_by_role("region", name="Outcomes")
    head = outcomes.get_by_role("columnheader").first
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", re.compile("scending"))
    others = page.locator("th[aria-sort]")
    expect(others).to_have_count(1)


def test_results_explain_every_column(page: Page, world: World) -> None:
    examined(world)
    look_at(page, "#/results")
    shown = page.locator("#content > div").filter(has=page.get_by_role("heading", name="Lag"))
    expect(shown.get_by_role("row").filter(has_text="stock/1")).to_contain_text("1 min 1 s")
    shown.get_by_text("What the columns mean").click()
    for column in COLUMNS["lag"]:
        expect(shown.get_by_text(column.meaning)).to_be_visible()


def test_every_column_of_what_is_stuck_now_is_explained(page: Page, world: World) -> None:
    look_at(page, "#/now")
    found = world.ask("GET", "now")
    tables = [
        each for each in world.ask("GET", "now/tables")["items"] if found[each["name"]]["items"]
    ]
    assert {"held_back", "receivers", "channels"} <= {each["name"] for each in tables}
    for table in tables:
        heading = page.get_by_role("heading", name=table["title"], exact=True)
        shown = page.locator(".contents > div").filter(has=heading)
        shown.get_by_text("What the columns mean").click()
        # The time of a message leads to it.
        for column in table["columns"]:
            if column["name"].endswith("_id"):
                continue
            expect(shown.get_by_text(column["meaning"], exact=True)).to_be_visible()


def test_raised_alerts_are_shown_with_what_to_do(page: Page, world: World) -> None:
    alert = {"alert": "audit", "since": 1, "reason": "3 violations", "next": "look at them"}
    told = {**world.ask("GET", "now"), "alerts": {"items": [alert], "more": 0}}
    page.route("**/admin/api/v1/now?*", lambda route: route.fulfill(json=told))
    look_at(page, "#/now")
    row = page.get_by_role("row").filter(has_text="3 violations")
    expect(row).to_contain_text("audit")
    expect(row).to_contain_text("look at them")


def test_the_audit_shows_who_changed_something(page: Page) -> None:
    go(page, "Audit")
    row = page.get_by_role("row").filter(has_text="session.end")
    expect(row).to_contain_text("operator/ann")
    expect(row).to_contain_text("mail/2")


def test_an_unknown_message_is_not_shown_as_received(page: Page) -> None:
    look_at(page, "#/messages/holdfast-1763600000000000000")
    expect(page.get_by_text("No message with this id is known.")).to_be_visible()
    expect(page.get_by_text("Received")).to_have_count(0)


# Lists that stay fresh


def seen_again(page: Page) -> None:
    """Have the page refresh at once, as when its user comes back to it."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_list_is_refreshed_without_losing_focus_or_input(page: Page, world: World) -> None:
    look_at(page, "#/sessions?prefix=s")
    page.get_by_label("Begins with").fill("half a wo")
    page.get_by_role("link", name="stock/1").focus()
    page.evaluate("window.row = document.activeElement.closest('tr')")
    waiting = page.get_by_role("row").filter(has_text="stock/1").locator("td").nth(3)
    before = waiting.inner_text()
    world.publish("/orders/paid", {"order": 1})
    # The list is refreshed by itself.
    expect(waiting).not_to_have_text(before)
    world.receiver("slow/1", "/none")
    seen_again(page)
    expect(page.get_by_role("link", name="slow/1")).to_be_visible()
    expect(page.get_by_role("link", name="stock/1")).to_be_focused()
    assert page.evaluate("window.row.isConnected"), "the row is the same element"
    expect(page.get_by_label("Begins with")).to_have_value("half a wo")
    world.ask("DELETE", "sessions/slow/1")
    seen_again(page)
    expect(page.get_by_role("link", name="slow/1")).to_have_count(0)


def test_a_refresh_waits_for_a_selection_and_keeps_what_was_opened(
    page: Page, world: World
) -> None:
    look_at(page, "#/sessions/stock/1")
    first = page.locator("tbody tr").first
    first.locator("summary").click()
    queue = page.get_by_role("heading", name="Queue").locator("..")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#content h1'))")
    world.publish("/orders/paid", {"order": "late"})
    with pytest.raises(TimeoutError), page.expect_request("**/queue?*", timeout=100):
        seen_again(page)
    expect(queue).not_to_contain_text('"late"')
    page.evaluate("getSelection().removeAllRanges()")
    seen_again(page)
    expect(queue).to_contain_text('"late"')
    expect(first.locator("pre")).to_be_visible()


def test_a_hidden_page_is_not_refreshed(page: Page, world: World) -> None:
    look_at(page, "#/channels?prefix=/later")
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"
    page.evaluate(hide % "true")
    world.receiver("late/1", "/later")
    seen_again(page)
    assert page.get_by_role("row").filter(has_text="/later").count() == 0
    page.evaluate(hide % "false")
    seen_again(page)
    expect(page.get_by_role("row").filter(has_text="/later")).to_be_visible()


def test_a_list_says_how_old_it_is_while_the_server_is_away(
    page: Page, desk: BrowserContext, complaints: list[str]
) -> None:
    look_at(page, "#/sessions")
    desk.set_offline(True)
    seen_again(page)
    expect(page.get_by_text("The page shows the state of")).to_be_visible()
    expect(page.get_by_role("link", name="stock/1")).to_be_visible()
    desk.set_offline(False)
    seen_again(page)
    expect(page.get_by_text("The page shows the state of")).to_be_hidden()
    assert {each for each in complaints if "ERR_INTERNET_DISCONNECTED" not in each} == set()
    complaints.clear()


def test_a_list_that_was_opened_while_the_server_was_away_comes_by_itself(
    page: Page, desk: BrowserContext, complaints: list[str]
) -> None:
    look_at(page, "#/channels")
    desk.set_offline(True)
    go(page, "Sessions")
    expect(page.get_by_text("The server cannot be reached.").first).to_be_visible()
    expect(page.get_by_role("link", name="stock/1")).to_be_hidden()
    desk.set_offline(False)
    expect(page.get_by_role("link", name="stock/1")).to_be_visible()
    expect(page.get_by_text("The server cannot be reached.")).to_be_hidden()
    assert {each for each in complaints if "ERR_INTERNET_DISCONNECTED" not in each} == set()
    complaints.clear()


def test_nothing_is_green_while_the_server_is_away(
    page: Page, desk: BrowserContext, complaints: list[str]
) -> None:
    green = """() => [...document.querySelectorAll("#content .good, #who .good")].filter((each) => {
        const own = getComputedStyle(each), dot = getComputedStyle(each, "::before");
        return each.matches(".state") ? dot.color === GOOD : own.color === GOOD;
    }).map((each) => each.textContent)"""
    look_at(page, "#/")
    page.evaluate(
        """() => {
            const probe = document.createElement("span");
            probe.style.color = "var(--good)";
            document.body.append(probe);
            globalThis.GOOD = getComputedStyle(probe).color;
            probe.remove();
        }"""
    )
    assert "balanced" in page.evaluate(green)
    desk.set_offline(True)
    expect(page.get_by_text("The page shows the state of")).to_be_visible()
    assert page.evaluate(green) == []
    desk.set_offline(False)
    expect(page.get_by_text("The page shows the state of")).to_be_hidden()
    assert {each for each in complaints if "ERR_INTERNET_DISCONNECTED" not in each} == set()
    complaints.clear()


@pytest.mark.parametrize(("kind", "mood"), [("alert raised", "bad"), ("alert cleared", "good")])
def test_an_alert_is_red_when_it_is_raised_but_not_when_it_is_cleared(
    page: Page, kind: str, mood: str
) -> None:
    data = {"kind": kind, "channel": None, "alert": "letters", "reason": f"{kind}: 3 letters"}

    def say(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(
            response=answer, json=[{"channel": "/sys/alert", "data": data}, *answer.json()]
        )

    look_at(page, "#/sessions")
    page.route("**/admin/feed", say)
    notice = page.locator("#notices .notice").filter(has_text=data["reason"]).first
    expect(notice).to_have_class(re.compile(rf"\b{mood}\b"))
    page.unroute("**/admin/feed", say)


@pytest.mark.parametrize("address", ["#/", "#/sessions"])
def test_a_page_says_how_old_it_is_while_the_server_does_not_answer(
    page: Page, complaints: list[str], address: str
) -> None:
    look_at(page, address)
    old = page.get_by_text("The page shows the state of")
    expect(old).to_be_hidden()
    unanswered: list[Route] = []
    page.route("**/*", lambda route: unanswered.append(route))
    expect(old).to_be_visible()
    expect(page.get_by_text("no figures")).to_be_visible()
    page.unroute("**/*")
    for route in unanswered:
        # The page may have given the request up.
        with contextlib.suppress(Error):
            route.abort()
    expect(old).to_be_hidden()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    # The browser reports each request that got no answer.
    assert {each for each in complaints if "ERR_FAILED" not in each} == set()
    complaints.clear()


def test_the_overview_says_which_shards_are_missing_and_shows_no_rates_against_fewer(
    page: Page, world: World
) -> None:
    go(page, "Overview")
    shown = page.evaluate(
        """async (found) => {
            const {show} = await import("/static/console/overview.js");
            const missing = {...found, time: found.time + 1000, published: 0, unanswered: [
                {shard: 1, reason: "it did not answer within 1 s"},
            ]};
            const back = {...found, time: found.time + 2000, published: 9000};
            const text = async (...readings) =>
                (await show({readings, alerts: [], listen() {}}, [], {charts: "live"})).innerText;
            return [await text(found, missing), await text(missing, back)];
        }""",
        world.ask("GET", "figures"),
    )
    assert "Shard 1 is not in these figures: it did not answer within 1 s." in shown[0]
    assert "not in these figures" not in shown[1]
    assert "9,000" not in shown[1]
