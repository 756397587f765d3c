"""The page of all reports: complete, without scripts, and without anything from elsewhere."""

import re

import pytest

from holdfast.cli.pipeline import Report
from holdfast.pipeline.html import throughput
from holdfast.pipeline.html.charts import lines, ranges, stacked
from holdfast.pipeline.html.page import page
from holdfast.pipeline.html.sections import SECTIONS
from holdfast.pipeline.reports.catalogue import REPORTS, Result
from holdfast.pipeline.reports.forms import number, with_unit

EVIL = "<script>alert('x')</script>"
RESULTS = {
    "latency": Result(
        ["channel", "n", "delivery_p50", "delivery_p95", "delivery_p99"],
        [[EVIL, 3, 0.0, 12.5, 100.0], [None, 1, 1.0, 1.0, 1.0]],
    ),
    "dead": Result(["code", "channel", "dead"], [["user.update.error", EVIL, 3]]),
    "poison": Result(["message", "dead"], []),
    "redelivery": Result(["receiver", "channel", "redeliveries"], [[EVIL, "/a", 2]]),
    "funnel": Result(
        ["channel", "copies", "acked", "open", "dead", "expired", "discarded", "lost"],
        [[EVIL, 6, 5, 1, 0, 0, 0, 0]],
    ),
    "flapping": Result(["receiver", "losses"], [[EVIL, 4]]),
    "holdback-advice": Result(["channel", "backoff"], [[EVIL, None]]),
    "publishers": Result(["sender", "bytes"], [[EVIL, 3000], [None, 1000]]),
    "slow-receivers": Result(["receiver", "ack_p95"], [[EVIL, 12.5]]),
    "backlog": Result(
        ["hour", "most", "waiting"],
        [["2025-11-20T11:00:00.000Z", 3, 2], ["2025-11-20T10:00:00.000Z", 7, 1]],
    ),
    "days": Result(["day", "copies"], [["2025-11-21T00:00:00.000Z", 3], [None, 5]]),
    "unusual": Result(
        ["hour", "channel", "measure", "found", "usual", "spreads"],
        [["2025-11-20T10:00:00.000Z", EVIL, "delivery_p95", 40.0, 10.0, -4.0]],
    ),
    "causes": Result(
        ["code", "wording", "refusals"], [["user.update.error", EVIL, 3], [None, None, 1]]
    ),
    "requests": Result(
        [
            "channel",
            "asked",
            "answered",
            "no_responders",
            "timeout",
            "refused",
            "abandoned",
            "unsent",
        ],
        [[EVIL, 4, 3, 0, 1, 0, 0, 0]],
    ),
    "trend": Result(["channel", "waiting", "came", "went"], [[EVIL, 5, 3, 2]]),
    "lag": Result(
        ["hour", "receiver", "lag_p95"], [["2025-11-20T10:00:00.000Z", EVIL, 12.5], [None, "a", 1]]
    ),
    "refused-publishes": Result(["reason", "channel", "refused"], [["data_missing", EVIL, 3]]),
    "throughput": Result(
        ["minute", "node", "published", "handed", "dead"],
        [[f"2025-11-20T10:{n:02}:00.000Z", "n1", n, 2 * n, 0] for n in range(60)],
    ),
}


@pytest.fixture(scope="module")
def whole() -> str:
    return page(RESULTS, source=EVIL)


def test_every_report_has_a_section_on_the_page(whole: str) -> None:
    assert {*REPORTS} == {*SECTIONS} == {*Report} - {"all"}
    for name in REPORTS:
        assert f'id="{name}"' in whole


def test_the_page_loads_nothing_and_runs_no_scripts(whole: str) -> None:
    assert "<script" not in whole
    assert not re.findall(r'(?:src|href)="(?!#)', whole)
    assert "default-src 'none'" in whole


def test_the_page_states_the_main_findings_of_reports(whole: str) -> None:
    assert "<b>6</b>copies for receivers" in whole
    assert "<b>0 ms</b>median on the busiest channel" in whole
    assert "3 of 3 dead letters are" in whole
    assert "2 times in total" in whole
    assert "2.9 KiB of 3.9 KiB are from" in whole
    assert "At most 7 waited, in the hour of 2025-11-20 at 10:00 UTC, and 2 at the end" in whole
    assert "2 days; the busiest was (unknown), with 5 copies" in whole
    assert "On 2025-11-20 at 10:00 UTC, p95 of" in whole
    assert ": 40 ms instead of 10 ms." in whole
    assert "3 of 4 refusals are" in whole
    assert "3 of 4 requests were answered" in whole
    assert "is the slowest: p95 is 12.5 ms" in whole


def test_tables_have_times_and_shares_as_people_write_them_and_explain_every_column() -> None:
    rows = [["n1-1763632840000000000", "/a", 4, 3, "user.update.error", 0.75]]
    columns = ["message", "channel", "receivers", "dead", "code", "share"]
    shown = page({"poison": Result(columns, [*rows])}, source="")
    assert "<td>n1-1763632840000000000</td>" in shown
    assert '<td class="n">75 %</td>' in shown
    assert "<dt>share</dt><dd>DEAD as a part of all receivers.</dd>" in shown
    assert shown.count("<dt>") == len(columns)
    lag = Result(["hour", "receiver", "lag_p95"], [["2025-11-20T10:00:00.000Z", "a/1", 2500.0]])
    shown = page({"lag": lag}, source="")
    days = Result(["day", "copies"], [["2025-11-21T00:00:00.000Z", 3]])
    assert 'title="2025-11-21">2025-11-21</span>' in page({"days": days}, source="")
    assert '<td>2025-11-20 10:00 UTC</td><td>a/1</td><td class="n">2.5 s</td>' in shown


def test_a_time_is_written_in_a_suitable_unit() -> None:
    assert [with_unit(value, " ms") for value in (0.5, 999, 30_200, 600_000)] == [
        "0.5 ms",
        "999 ms",
        "30.2 s",
        "10 min",
    ]


def test_the_page_says_what_is_unknown_and_which_reports_are_empty(whole: str) -> None:
    assert "(unknown)" in whole
    assert "No poison messages." in whole


def test_parts_of_a_bar_are_proportional_to_their_values() -> None:
    drawn = stacked(["a", "b"], {"x": [30, 10], "y": [10, 0]})
    widths = [float(width) for width in re.findall(r'style="width:([\d.]+)%"', drawn)]
    assert widths[0] == pytest.approx(3 * widths[1], rel=0.01)
    assert widths[0] == pytest.approx(3 * widths[2], rel=0.01)


def test_times_without_events_are_drawn_as_zero() -> None:
    columns = ["minute", "node", "published", "handed", "dead"]
    rows = [[f"2025-11-20T{hour}:00:00.000Z", "n1", 1, 5, 0] for hour in (10, 11, 20)]
    drawn = throughput.picture(Result(columns, [*rows]))
    [handed, _] = re.findall(r'<polyline class="\w+" points="([^"]+)"', drawn)
    heights = [float(point.partition(",")[2]) for point in handed.split()]
    # A line has at most so many points: ten hours in steps of three minutes.
    assert len(heights) == 201
    assert [place for place, height in enumerate(heights) if height < max(heights)] == [0, 20, 200]


def test_receivers_are_counted_once_however_many_channels_they_have() -> None:
    rows = [["joe/1", "/a", 2], ["joe/1", "/b", 1], ["ann/1", "/a", 0]]
    found = SECTIONS["redelivery"].finding(Result(["receiver", "channel", "redeliveries"], [*rows]))
    assert found == "1 receiver had redeliveries, 3 times in total."


def test_charts_of_no_values_and_of_one_value_can_be_drawn() -> None:
    assert "polyline" in lines(["10:00"], {"x": [1]})
    assert "svg" in lines([], {"x": []})
    assert "scale" in ranges([])


@pytest.mark.parametrize(("value", "text"), [(1234567, "1,234,567"), (0.25, "0.25"), (3.0, "3")])
def test_numbers_are_written_with_separators_and_without_needless_decimals(
    value: float, text: str
) -> None:
    assert number(value) == text
