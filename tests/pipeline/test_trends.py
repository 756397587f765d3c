"""Reports that compare hours and days, find what fails alike, and follow requests."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.journal.schema import Event
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.scope import EVERYTHING, Scope
from tests.pipeline.stored import store_events
from tests.pipeline.tales import DAY, HOUR, USUAL, a_week, more, refusals, requests, work
from tests.unit.pipeline.events import START_US, event, published
from tests.unit.pipeline.framed_events import one_run
from tests.unit.pipeline.stories import acked, died, handed, refused_publishes

pytestmark = pytest.mark.untraced


def ask(lake: Lake, name: str, scope: Scope = EVERYTHING) -> list[dict[str, Any]]:
    with of_lake(lake, scope) as tables:
        return tables.ask(REPORTS[name]).by_name()


def after_start(row: dict[str, Any], name: str, unit: int) -> float:
    return float((row[name].timestamp() - START_US / 1e6) / unit)


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return store_events(tmp_path_factory.mktemp("week"), one_run(a_week()))


def test_hours_that_differ_from_those_of_other_days_are_unusual(week: Lake) -> None:
    found = ask(week, "unusual")
    assert [after_start(row, "hour", HOUR) for row in found] == [5 * 24, 6 * 24 + 1]
    spread = USUAL**0.5
    assert [(row["measure"], row["found"], row["usual"]) for row in found] == [
        ("published", 3 * USUAL, USUAL),
        ("published", 0, USUAL),
    ]
    assert [row["spreads"] for row in found] == [
        pytest.approx(2 * USUAL / spread, abs=0.01),
        pytest.approx(-USUAL / spread, abs=0.01),
    ]


def test_slow_hours_and_bursts_of_deaths_are_unusual_too(tmp_path: Path) -> None:
    told: list[Event] = []
    for day in range(6):
        for n in range(10):
            at = day * DAY + HOUR + n
            took = 5.0 if day == 3 else 0.1
            told += [published(at, 1), handed(at + took, at, "ann/1")]
            told += died(at + 6, at, "ann/1") if day == 2 else [acked(at + 6, at, "ann/1")]
    told += [published(0, 1), published(5 * DAY + 3 * HOUR, 1)]
    found = {row["measure"]: row for row in ask(store_events(tmp_path, one_run(told)), "unusual")}
    assert found.keys() == {"dead", "delivery_p95"}
    assert after_start(found["dead"], "hour", DAY) == pytest.approx(2, abs=0.1)
    assert (found["dead"]["found"], found["dead"]["usual"]) == (10, 0)
    assert after_start(found["delivery_p95"], "hour", DAY) == pytest.approx(3, abs=0.1)
    assert found["delivery_p95"]["found"] == pytest.approx(5000, rel=0.01)


def test_four_days_are_too_few_to_find_unusual_hours(week: Lake) -> None:
    until = START_US // 1000 + 4 * DAY * 1000
    assert ask(week, "unusual", Scope(until=until)) == []


def test_each_day_is_compared_with_the_one_before_and_the_week_before(week: Lake) -> None:
    found = ask(week, "days")
    names = ("published", "copies", "acked", "dead", "copies_to_day_before")
    assert [tuple(row[name] for name in names) for row in found] == [
        (2 * USUAL, 2 * USUAL, 2 * USUAL, 0, 2.0),
        (USUAL, USUAL, USUAL, 0, 0.25),
        (4 * USUAL, 4 * USUAL, 4 * USUAL, 0, 2.0),
        *[(2 * USUAL, 2 * USUAL, 2 * USUAL, 0, 1.0)] * 4,
        (2 * USUAL, 2 * USUAL, 2 * USUAL, 0, None),
    ]
    assert [row["copies_to_week_before"] for row in found] == [1.0] + [None] * 7
    assert [row["delivery_p95"] for row in found] == pytest.approx([10] * 8, rel=0.01)
    assert {row["p95_to_day_before"] for row in found[:-1]} == {1.0}
    # A day without deaths is no basis for a comparison.
    assert {row["dead_to_day_before"] for row in found} == {None}


def test_the_backlog_counts_copies_that_came_and_have_not_gone(tmp_path: Path) -> None:
    told = [event("node", -1, what="start", number=0)]
    # Of this copy the journal has only the end.
    told.append(acked(1, -60, "ann/1"))
    told += [published(n, 2) for n in range(10)]
    told += [acked(90, n, "ann/1") for n in range(10)]
    told += [*died(HOUR, 0, "bob/1"), event("replayed", HOUR, 0, receiver="bob/1", generation=1)]
    told += [event("expired", 2 * HOUR, n, receiver="bob/1") for n in range(9)]
    found = ask(store_events(tmp_path, one_run(told)), "backlog")
    names = ("came", "went", "most", "waiting")
    assert [tuple(row[name] for name in names) for row in found] == [
        (0, 9, 1, 1),
        (1, 1, 10, 10),
        (20, 10, 20, 10),
    ]
    assert [after_start(row, "hour", HOUR) for row in found] == [2, 1, 0]


CAUSE = ("code", "wording", "refusals", "dead", "receivers", "channels", "example")


def causes(lake: Lake) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in CAUSE) for row in ask(lake, "causes")]


def test_refusals_with_the_same_code_and_wording_are_one_cause_on_all_channels(
    tmp_path: Path,
) -> None:
    assert causes(store_events(tmp_path, one_run(refusals()))) == [
        ("user.update.error", "order * of * is unknown", 39, 39, 3, 39, "/orders/eu/*"),
        ("user.update.error", "no room for order *", 2, 2, 2, 2, "/orders/eu/*"),
        ("user.update.internalError", "order * of * is unknown", 1, 1, 1, 1, "/chat"),
        ("user.update.holdback", None, 1, 0, 1, 1, "/chat"),
    ]


def test_refusals_of_a_copy_that_became_no_letter_are_causes_each_with_its_code(
    tmp_path: Path,
) -> None:
    why = (("user.update.error", "no stock"), ("user.update.illegalArgument", "no *"))
    refused = [
        event("refused", 2 + n, 1, receiver="ann/1", attempt=n + 1, code=code, wording=wording)
        for n, (code, wording) in enumerate(why)
    ]
    end = event("discarded", 4, 1, receiver="ann/1", code="no_letter")
    told = [published(1, 1), handed(1, 1, "ann/1"), *refused, end]
    assert causes(store_events(tmp_path, one_run(told))) == [
        (code, wording, 1, 0, 1, 1, "/a") for code, wording in why
    ]


@pytest.fixture
def asked(tmp_path: Path) -> Lake:
    return store_events(tmp_path, one_run(requests()))


def test_requests_are_reported_with_their_ends_and_answer_times(asked: Lake) -> None:
    [ask_them, other, nowhere] = ask(asked, "requests")
    ends = ("answered", "no_responders", "timeout", "refused", "abandoned", "unsent")
    assert (ask_them["channel"], ask_them["asked"]) == ("/ask", 106)
    assert [ask_them[end] for end in ends] == [100, 1, 2, 1, 1, 0]
    times = [ask_them[f"answer_p{part}"] for part in (50, 95, 99)]
    assert times == pytest.approx([50.5, 95.05, 99.01])
    assert (ask_them["late"], ask_them["duplicate"]) == (2, 1)
    assert ask_them["share"] == round(100 / 106, 4)
    assert (other["channel"], other["asked"], other["answered"]) == ("/other", 1, 0)
    assert (nowhere["channel"], nowhere["denied"]) == (None, 1)


def test_requests_can_be_limited_to_a_channel_or_a_session(asked: Lake) -> None:
    assert [row["asked"] for row in ask(asked, "requests", Scope(channel="/other"))] == [1]
    found = ask(asked, "requests", Scope(receiver="bob/1"))
    assert [(row["asked"], row["late"]) for row in found] == [(0, 2)]


# What needs history of channels, receivers and refusals


def told_of_an_hour() -> list[Event]:
    """Four messages a quarter of an hour on each channel, of which ann falls ever more behind."""
    told: list[Event] = []
    for n in range(16):
        at = n * HOUR // 16
        told += [published(at, 1, "/shrinks"), published(at + 1, 1, "/grows")]
        told += [handed(at + 2, at, "bob/1"), acked(at + 3, at, "bob/1")]
        if n < 8:
            took = 10 * (n + 1)
            told += [handed(at + 3, at + 1, "ann/1"), acked(at + 1 + took, at + 1, "ann/1")]
    return told


def test_the_trend_has_what_waits_now_and_what_came_and_went(tmp_path: Path) -> None:
    told = [published(n, 1, "/old") for n in range(40)]
    told += [acked(DAY + HOUR + n, n, "ann/1") for n in range(30)]
    told += [published(DAY + HOUR + 100 + n, 2, "/new") for n in range(5)]
    told += [event("session", DAY + HOUR + HOUR / 2, receiver="ann/1", what="opened")]
    names = ("channel", "waiting", "hour_before", "day_before", "came", "went")
    rows = ask(store_events(tmp_path, one_run(told)), "trend")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("/new", 10, 0, 0, 10, 0),
        ("/old", 10, 40, 40, 0, 30),
    ]
    # Thirty went within an hour, so ten need a third of an hour more.
    assert rows[0]["empty"] is None
    assert after_start(rows[1], "empty", 1) == pytest.approx(DAY + HOUR + HOUR / 2 + HOUR / 3)


def test_the_trend_agrees_with_the_backlog_whatever_ends_moves_and_replays(
    tmp_path: Path,
) -> None:
    told = [*work(30, dead=5), *more()]
    told += [event("replayed", 400, 1, receiver="ann/1", letter=1, generation=1)]
    lake = store_events(tmp_path, one_run(told))
    backlog, trend = ask(lake, "backlog"), ask(lake, "trend")
    assert sum(row["waiting"] for row in trend) == backlog[0]["waiting"]
    assert all(row["waiting"] >= 0 for row in trend)


def test_the_lag_of_a_receiver_is_the_time_from_publish_to_ack_by_hour(tmp_path: Path) -> None:
    told = [*told_of_an_hour(), published(2 * HOUR, 1), handed(2 * HOUR + 1, 2 * HOUR, "ann/1")]
    told += [acked(2 * HOUR + 5, 2 * HOUR, "ann/1")]
    # Operators decide when replays happen.
    told += died(2 * HOUR + 6, 2 * HOUR, "bob/1")
    told += [event("replayed", 3 * HOUR, 2 * HOUR, receiver="bob/1", letter=1, generation=1)]
    told += [acked(3 * HOUR + 1, 2 * HOUR, "bob/1")]
    found = [
        (after_start(row, "hour", HOUR), row["receiver"], row["acked"], row["lag_max"])
        for row in ask(store_events(tmp_path, one_run(told)), "lag")
    ]
    assert found == [(2, "ann/1", 1, 5_000), (0, "ann/1", 8, 80_000), (0, "bob/1", 16, 3_000)]


def test_critical_time_goes_from_publish_to_ack_beside_the_first_hand_over(tmp_path: Path) -> None:
    lake = store_events(tmp_path, one_run(told_of_an_hour()))
    for scope in (EVERYTHING, Scope(channel="/grows")):
        [row] = [row for row in ask(lake, "latency", scope) if row["channel"] == "/grows"]
        times = [row[name] for name in ("delivery_p50", "answer_max", "critical_max")]
        assert times == pytest.approx([2_000, 78_000, 80_000], rel=0.01)
        assert row["critical_p50"] == pytest.approx(40_000, rel=0.01)


def test_refused_publishes_are_added_up_by_reason_and_channel(tmp_path: Path) -> None:
    told = [published(0, 1), refused_publishes(60, "publish_denied", "/orders", 3)]
    told += [refused_publishes(120, "publish_denied", "/orders", 4)]
    told += [refused_publishes(120, "data_missing", None, 1)]
    told += [refused_publishes(120, "late_reply", "/ret/*", 2)]
    lake = store_events(tmp_path, one_run(told))
    rows = ask(lake, "refused-publishes")
    assert [(row["reason"], row["channel"], row["refused"]) for row in rows] == [
        ("publish_denied", "/orders", 7),
        ("late_reply", "/ret/*", 2),
        ("data_missing", None, 1),
    ]
    assert after_start(rows[0], "first", 60) == 1
    assert after_start(rows[0], "last", 60) == 2
    of_orders = ask(lake, "refused-publishes", Scope(channel="/orders"))
    assert [row["refused"] for row in of_orders] == [7]
