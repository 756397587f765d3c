"""`holdfast message` and `holdfast audit` against an administration."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.output import when
from holdfast.web.admin.message_views import TraceStep
from tests.cli.conftest import Shell
from tests.pipeline.stored import store_events
from tests.unit.pipeline.events import NODE, START_US, event
from tests.unit.pipeline.framed_events import one_run
from tests.web.fake_operations import NO_MESSAGE, NOW_MS

ID = "holdfast-1790000000000000000"


def a_step(kind: str, **changes: Any) -> TraceStep:
    step = TraceStep(
        at_us=1_790_000_000_000_000,
        node="holdfast",
        kind=kind,
        receiver="joe/1",
        channel="/news",
        attempt=1,
        code=None,
        letter=None,
        copies=None,
        sender=None,
    )
    return replace(step, **changes)


def test_a_message_is_shown_with_its_places_and_all_steps_of_its_way(shell: Shell) -> None:
    shell.operations.steps = [a_step("published", receiver=None), a_step("handed")]
    done = shell.run("message", ID)
    assert done.exit_code == 0
    [row] = [line for line in done.stdout.splitlines() if line.startswith("joe/1\twaiting")]
    # Programs get the moment, people how long ago it was.
    assert row == f"joe/1\twaiting\tno\t0\t0\t{when(NOW_MS - 90_000)}"
    assert "RECEIVER\tSTATE\tHELD\tATTEMPTS\tREDELIVERED\tGONE" in done.stdout
    assert [line.split("\t")[1] for line in done.stdout.splitlines()[-2:]] == [
        "published",
        "handed",
    ]
    told = json.loads(shell.run("message", ID, "--json").stdout)
    assert [each["kind"] for each in told["steps"]] == ["published", "handed"]
    assert told["queues"][0]["gone_since"] == NOW_MS - 90_000


def test_steps_are_listed_in_their_order_whatever_order_the_journal_has_them_in(
    shell: Shell,
) -> None:
    begin_us = 1_790_000_000_000_000
    shell.operations.steps = [
        a_step("published", receiver=None, attempt=None),
        a_step("handed", at_us=begin_us + 30),
        a_step("handed", at_us=begin_us + 20, receiver="ann/1"),
        a_step("returned", at_us=begin_us + 70, receiver="ann/1", attempt=None),
        a_step("refused", at_us=begin_us + 60, receiver="ann/1"),
        # The answer's time was read a little before that of the hand-over.
        a_step("acked", at_us=begin_us + 25, attempt=None),
    ]
    expected = [
        ("published", None),
        ("handed", "ann/1"),
        ("handed", "joe/1"),
        ("acked", "joe/1"),
        ("refused", "ann/1"),
        ("returned", "ann/1"),
    ]
    told = json.loads(shell.run("message", ID, "--json").stdout)
    assert [(each["kind"], each["receiver"]) for each in told["steps"]] == expected
    rows = [line.split("\t") for line in shell.run("message", ID).stdout.splitlines()[-6:]]
    assert [(row[1], row[2] or None) for row in rows] == expected


def test_an_unknown_message_is_a_failure(shell: Shell) -> None:
    done = shell.run("message", NO_MESSAGE)
    assert done.exit_code == 1
    assert "the journal is off" in done.stderr
    assert shell.run("message", NO_MESSAGE, "--json").exit_code == 1


def test_steps_that_have_left_the_journal_come_from_the_tables(
    shell: Shell, tmp_path: Path
) -> None:
    published = event("published", 0, 0, channel="/news", sender="pub/1", copies=1)
    end = event("dead", 1, 0, receiver="joe/1", code="user.update.error", letter=7)
    other = event("acked", 1, 1, receiver="joe/1")
    lake = store_events(tmp_path / "lake", one_run([published, end, other]))
    id = f"{NODE}-{START_US * 1000:019d}"
    # The journal still has the end, and the steps after it.
    end_us = START_US + 1_000_000
    known = a_step("dead", at_us=end_us, node=NODE, attempt=None, channel=None)
    known = replace(known, code="user.update.error", letter=f"{7:019d}")
    shell.operations.steps = [known, replace(known, kind="replayed", at_us=end_us + 1)]
    told = json.loads(shell.run("message", id, "--json", "--lake", str(lake.root)).stdout)
    assert [step["kind"] for step in told["steps"]] == ["published", "dead", "replayed"]
    assert {**told["steps"][1]} == asdict(known)


def test_missing_tables_are_named(shell: Shell, tmp_path: Path) -> None:
    done = shell.run("message", ID, "--lake", str(tmp_path / "lake"))
    assert (done.exit_code, f"{tmp_path}/lake has no tables" in done.stderr) == (1, True)


def test_the_error_for_an_unknown_message_names_the_known_tables(shell: Shell) -> None:
    shell.operations.lakes = ["desk:/data/lake"]
    assert "desk:/data/lake" in shell.run("message", NO_MESSAGE).stderr


@pytest.mark.parametrize("id", ["", "1790000000000000000", "holdfast-179", f"{ID}/x", "a b-1"])
def test_an_invalid_id_is_a_usage_error(shell: Shell, id: str) -> None:
    assert shell.run("message", id).exit_code == 2


def test_changes_of_operators_are_listed(shell: Shell) -> None:
    shell.run("dispatcher", "hold", "joe/1", "--reason", "disk full")
    rows = [line.split("\t") for line in shell.run("audit").stdout.splitlines()]
    assert rows[0] == ["SINCE", "WHO", "ACTION", "TARGET", "OUTCOME", "DETAIL"]
    assert rows[1][1:5] == ["operator/ann", "session.hold", "joe/1", "ok"]
    assert json.loads(shell.run("audit", "--json").stdout)["detail"]["reason"] == "disk full"


def test_lists_are_sorted_by_a_field_of_their_items(shell: Shell) -> None:
    sort = ["dead", "list", "--sort"]
    ascending = [
        json.loads(line)["id"]
        for line in shell.run(*sort, "id", "--json").stdout.split("\n")
        if line
    ]
    assert ascending == sorted(ascending)
    assert len(ascending) == 5
    done = shell.run(*sort, "-id", "--limit", "2")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()[1:]] == ascending[:2:-1]
    assert "there are more" in done.stderr
    done = shell.run(*sort, "colour")
    assert done.exit_code == 2
    assert "receiver" in done.stderr
