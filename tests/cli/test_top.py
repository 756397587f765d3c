"""`holdfast top`: one reading after the other."""

import json
import re
from dataclasses import asdict

import pytest
from rich.console import Console

from holdfast.cli.output import Json
from holdfast.cli.top import shown as tables_of
from holdfast.web.admin.now_views import FirstItems
from tests.cli.conftest import Shell
from tests.web.fake_operations import a_lost_shard, a_shard, nothing_waits, some_figures


def test_readings_follow_until_an_interruption(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.top.sleep", sleep)
    done = shell.run("top", "--every", "5")
    assert {json.loads(line)["node"] for line in done.stdout.splitlines()} == {some_figures().node}
    assert (len(done.stdout.splitlines()), pauses, done.exit_code) == (3, [5.0] * 3, 0)


def shown(found: Json, before: Json | None) -> str:
    """The table as a terminal has it, with single spaces."""
    with (console := Console(width=80)).capture() as capture:
        console.print(tables_of(found, before))
    return re.sub(" +", " ", capture.get())


def test_rates_are_counts_since_the_previous_reading() -> None:
    first = asdict(some_figures())
    later = {**first, "time": first["time"] + 2000, "published": first["published"] + 9}
    assert re.search(r"published \d+ 4\.5 \n", shown(later, first))
    missing = {**later, "unanswered": [{"shard": 1, "reason": "it cannot be reached"}]}
    assert re.search(r"published \d+ \n", shown(missing, first))
    assert re.search(r"published \d+ \n", shown(later, missing))
    assert "without shard 1" in shown(missing, first)
    # One of several workers was restarted.
    less = {**later, "published": 1}
    assert re.search(r"published \d+ \n", shown(less, {**first, "published": 2}))
    restarted = {**later, "started": first["started"] + 1, "published": 0}
    assert "published 0 \n" in shown(restarted, later)


def test_an_unavailable_store_is_shown() -> None:
    found = {**asdict(some_figures()), "store_available": False}
    assert "the store is unavailable" in shown(found, None)


def test_each_of_several_workers_has_a_row(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.top.sleep", sleep)
    rows = FirstItems([a_shard(0, restarts=3), a_lost_shard(1)], 0)
    shell.operations.standing = nothing_waits(shards=rows)
    found = json.loads(shell.run("top", "--json").stdout)
    assert [each["shard"] for each in found["shards"]] == [0, 1]
    told = shown(found, None)
    assert re.search(r" 0 serving \S+ 3 12 available 1 2 \n", told)
    assert re.search(r" 1 away \S+ 0 2 \n", told)
