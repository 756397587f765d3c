"""Dead letters in the console: groups, export, import, replay, edit, purge and remarks."""

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from holdfast.units import counted
from tests.browser.console.steps import answer, go, look_at
from tests.browser.console.world import World


def test_dead_letters_are_shown_in_groups_with_their_attempts(page: Page) -> None:
    go(page, "Dead letters")
    group = page.get_by_role("listitem").filter(has_text="total does not match")
    expect(group.get_by_role("img")).to_have_attribute("aria-label", "5 in the last 24 hours")
    group.get_by_role("link").first.click()
    expect(page.get_by_role("row")).to_have_count(6)
    expect(page.get_by_role("img", name="5 in the last 30 days")).to_be_visible()
    page.get_by_role("row").nth(1).get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Attempts")).to_be_visible()
    expect(page.locator(".difference .added").first).to_contain_text('"order": ')


def test_dead_letters_are_grouped_by_less_than_their_cause(page: Page, world: World) -> None:
    go(page, "Dead letters")
    groups = page.locator("#content li.group")
    causes = len(world.ask("GET", "dead-letters/groups")["items"])
    codes = world.ask("GET", "dead-letters/groups?by=code")["items"]
    expect(groups).to_have_count(causes)
    page.get_by_role("link", name="code", exact=True).click()
    expect(groups).to_have_count(len(codes))
    groups.filter(has_text=codes[0]["code"]).get_by_role("link").first.click()
    expect(page.get_by_label("Code")).to_have_value(codes[0]["code"])


def test_letters_are_exported_to_a_file(page: Page) -> None:
    look_at(page, "#/dead/letters?receiver=stock/1")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export these").click()
    assert download.value.suggested_filename == "dead-letters.ndjson"
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert len(lines) == 5
    assert {json.loads(line)["channel"] for line in lines} == {"/orders/paid"}


def test_letters_are_replayed_after_a_preview(page: Page, world: World) -> None:
    look_at(page, "#/dead/letters?receiver=bills/1&code=user.update.deadMessage")
    page.get_by_role("button", name="Replay these").click()
    answer(page, "Preview", **{"Canary size": "0"})
    expect(page.get_by_role("dialog")).to_contain_text("/orders/cancelled (1)")
    answer(page, "Replay")
    expect(page.get_by_role("heading", name="Replay")).to_contain_text("running")
    expect(page.locator("dl div", has_text=re.compile("^sent"))).to_have_text("sent1")
    world.settle("bills/1")
    expect(page.get_by_role("heading", name="Replay")).to_contain_text("done")
    go(page, "Replays")
    expect(page.get_by_role("row")).to_have_count(2)


def test_the_preview_names_receivers_that_are_away(page: Page, world: World) -> None:
    traveller = world.receiver("trip/1", "/trips")
    world.publish("/trips", 1, 2)
    world.refuse(traveller, "which trip?")
    look_at(page, "#/dead/letters?receiver=trip/1")
    page.get_by_role("button", name="Replay these").click()
    answer(page, "Preview")
    expect(page.get_by_role("dialog")).to_contain_text("trip/1 (2)")
    away = page.get_by_role("dialog").locator("dl div", has_text=re.compile("^away"))
    expect(away).to_have_count(0)
    answer(page, "Cancel")
    traveller.send("/meta/disconnect")
    page.get_by_role("button", name="Replay these").click()
    answer(page, "Preview")
    expect(away).to_have_text("awaytrip/1 (2)")
    answer(page, "Cancel")


def test_letters_are_purged_after_their_number_was_shown(page: Page, world: World) -> None:
    look_at(page, "#/dead/letters?receiver=stock/1")
    page.get_by_role("button", name="Purge these").click()
    expect(page.get_by_role("dialog")).to_contain_text("Purge 5 letters?")
    answer(page, "Purge")
    expect(page.get_by_text("Purged 5 letters.")).to_be_visible()
    assert world.ask("GET", "dead-letters?receiver=stock/1")["items"] == []


def test_a_letter_is_sent_with_other_data_and_kept_as_it_was(page: Page, world: World) -> None:
    big = 12345678901234567890
    world.publish("/orders/cancelled", {"order": "unknown", "by": big})
    world.refuse(world.talkers["bills/1"], "which order?")
    [letter] = world.ask("GET", "dead-letters?receiver=bills/1&limit=1")["items"]
    look_at(page, f"#/dead/letter/{letter['id']}")
    page.get_by_role("button", name="Edit and send").click()
    data = page.get_by_label("Data (JSON)")
    expect(data).to_have_value(re.compile(f'"by": {big}'))
    data.fill('{"order": ')
    assert data.evaluate("(area) => area.validationMessage").startswith(
        "The data is not valid JSON"
    )
    data.fill(f'{{"order": 4712, "by": {big}}}')
    answer(page, "Preview")
    added = page.get_by_role("dialog").locator(".added")
    expect(added).to_have_text('+   "order": 4712,')
    answer(page, "Send")
    expect(page.get_by_role("heading", name="Edited")).to_be_visible()
    expect(page.locator(".difference .removed")).to_have_text('-   "order": "unknown",')
    [event] = world.take(world.talkers["bills/1"])
    assert event["data"] == {"order": 4712, "by": big}
    assert event["ext"]["delivery"]["properties"] == {"__deadMessageId": letter["id"]}
    page.get_by_role("link", name="The letter").click()
    expect(page.locator("dd", has_text="a replay")).to_be_visible()
    expect(page.get_by_role("button", name="Edit and send")).to_have_count(0)
    expect(page.locator("pre").first).to_contain_text('"order": "unknown"')
    assert world.ask("GET", "audit?limit=5")["items"][0]["who"] == "operator/ann"
    # The letter of the edited message leads to the first letter.
    world.refuse(world.talkers["bills/1"], "still unknown")
    look_at(page, "#/dead/letters?receiver=bills/1")
    page.get_by_role("row").nth(1).get_by_role("link").first.click()
    page.get_by_role("link", name="another letter (edited)").click()
    expect(page.locator("pre").first).to_contain_text('"order": "unknown"')


def test_exported_letters_are_imported_and_each_line_is_accounted_for(
    page: Page, world: World, tmp_path: Path
) -> None:
    look_at(page, "#/dead/letters?channel=/orders/cancelled")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export these").click()
    lines = Path(download.value.path()).read_bytes().splitlines()
    world.ask(
        "POST", "dead-letters/purge", {"filter": {"channel": "/orders/cancelled"}, "dry_run": False}
    )
    file = tmp_path / "letters.ndjson"
    file.write_bytes(
        b"\n".join([*lines, lines[0], b"{", b'{"channel": "<img src=x onerror=alert(1)>"}'])
    )
    page.get_by_role("button", name="Import").click()
    page.get_by_label("File with JSON lines").set_input_files(file)
    answer(page, "Import")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text(f"{counted(len(lines), 'letter')} imported")
    expect(dialog).to_contain_text("already present1")
    expect(dialog.get_by_role("listitem")).to_have_count(2)
    expect(dialog.get_by_role("listitem").first).to_contain_text(f"Line {len(lines) + 2}: not JSON")
    answer(page, "Close")
    expect(page.get_by_role("row")).to_have_count(len(lines) + 1)


def test_operators_assign_and_annotate_groups_of_letters(page: Page, world: World) -> None:
    [letter] = world.ask("GET", "dead-letters?channel=/orders/cancelled&limit=1")["items"]
    address = f"#/dead/letters?fingerprint={letter['fingerprint']}"
    look_at(page, address)
    page.get_by_role("button", name="Assign or note").click()
    expect(page.get_by_label("Who", exact=True)).to_have_value("ann")
    answer(page, "Save", **{"Note": "a friend of <b>joe</b>\nknows more"})
    expect(page.locator(".remark")).to_contain_text("a friend of <b>joe</b>\nknows more")
    go(page, "Dead letters")
    group = page.get_by_role("listitem").filter(has_text="<b>joe</b>")
    expect(group).to_contain_text("ann")
    look_at(page, address)
    page.get_by_role("button", name="Change").click()
    answer(page, "Save", **{"Who": "", "Note": ""})
    expect(page.get_by_text("Not assigned.")).to_be_visible()


def test_characters_that_reorder_or_hide_text_are_shown_escaped_in_the_console(
    page: Page, world: World
) -> None:
    receiver = world.receiver("reorder/1", "/reorder")
    world.publish("/reorder", "pay \u202eeve")
    world.refuse(receiver, "no \u2066way\u2069 a\u200bb")
    look_at(page, "#/dead")
    expect(page.get_by_text(r"no \u2066way\u2069 a\u200bb")).to_be_visible()
    [letter] = world.ask("GET", "dead-letters?channel=/reorder")["items"]
    look_at(page, f"#/dead/letter/{letter['id']}")
    expect(page.locator("pre.json").first).to_contain_text(r"pay \u202eeve")
