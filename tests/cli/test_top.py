"""`holdfast top`: one reading after the other."""

import json
import re
from dataclasses import asdict
from datetime import datetime, time

import pytest
from rich.console import Console

from holdfast.cli.output import Json
from holdfast.cli.past import within
from holdfast.cli.top import shown as tables_of
from holdfast.web.admin.now_views import FirstItems
from tests.cli.conftest import Shell
from tests.web.fake_operations import (
    NOW_MS,
    a_lost_shard,
    a_past_row,
    a_shard,
    nothing_waits,
    some_figures,
    some_past,
)

NOW_MINUTE = NOW_MS // 60_000


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


def test_the_past_is_shown_once_with_who_comes_first(shell: Shell) -> None:
    buckets = [0] * 3 + [6, 0, 0, 4] + [0] * 10
    first = a_past_row(NOW_MINUTE, published=6, acked=2, waiting=3, hand_over_plain=buckets)
    later = a_past_row(NOW_MINUTE + 1, published=60, waiting=2, starts=1)
    shell.operations.past_figures = some_past(first, later)
    done = shell.run("top", "--since", "yesterday", "--until", "1h")
    assert done.exit_code == 0
    assert "published\t66\t0.55\t1.00\n" in done.stdout
    assert "starts\t1\t\t\n" in done.stdout
    assert "waiting\t3\n" in done.stdout
    assert "hand over plain\t10\t0.01\t0.1\n" in done.stdout
    assert "receivers, by hand-overs\nNAME\tCOUNT\tAT MOST\nreceivers 0\t10\t12\n" in done.stdout
    [(_, since, until, step, shard)] = shell.operations.asked
    assert isinstance(since, int)
    assert isinstance(until, int)
    assert 23 * 3_600_000 <= until - since <= 49 * 3_600_000
    assert datetime.fromtimestamp(since / 1000).time() == time()
    assert (step, shard) == (0, None)


def test_the_noisiest_publisher_is_one_command(shell: Shell) -> None:
    done = shell.run("top", "--by", "senders", "--sort", "count", "--json")
    found = json.loads(done.stdout)
    assert [each["name"] for each in found["items"]] == ["senders 2", "senders 1", "senders 0"]
    assert shell.run("top", "--by", "senders").stdout.startswith("senders, by messages, since ")
    assert shell.run("top", "--by", "nobody").exit_code == 2
    assert shell.run("top", "--since", "tomorrow").exit_code == 2


def test_the_past_of_a_worker_as_json(shell: Shell) -> None:
    done = shell.run("top", "--since", "today", "--shard", "1", "--json")
    found = json.loads(done.stdout)
    assert (found["counts"]["published"], found["served_ms"]) == (6, 60_000)
    assert found["times"]["turn"] == {
        "count": 0, "half_within_s": None, "99_percent_within_s": None
    }  # fmt: skip
    assert found["top"]["channels"]["items"][0]["at_most"] == 12
    assert shell.operations.asked[0][-1] == 1


def test_a_past_without_a_server_says_so(shell: Shell) -> None:
    shell.operations.past_figures = some_past()
    done = shell.run("top", "--since", "2h")
    assert (done.exit_code, "No server ran" in done.stderr) == (0, True)


def test_a_part_of_all_times_is_within_a_bound() -> None:
    bounds = (0.01, 0.1, 1.0)
    assert within(bounds, [1, 0, 1, 0], 0.5) == 0.01
    assert within(bounds, [1, 0, 2, 0], 0.5) == 1.0
    assert within(bounds, [99, 0, 0, 1], 0.99) == 0.01
    assert within(bounds, [90, 0, 0, 10], 0.99) is None
    assert within(bounds, [0, 0, 0, 0], 0.5) is None
