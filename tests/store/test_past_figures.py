"""Figures of the past in the store: what is kept, for how long, and in how much room."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.ranking import Ranking, RankingKind
from holdfast.delivery.basics.times import STEPS_S, WAITS_S
from holdfast.store.format.figure_records import COUNTS, LENGTHS, FigureRow
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.past_figures import DAY, HOURS, MINUTES, PastFigures
from holdfast.web.admin.figure_readings import TIMES
from tests.store.servers import ValkeyServer
from tests.store.store_process import StoreProcess, store_process

NOON = 29_833_320
MOST_BYTES = 2 * 1024 * 1024


def a_row(at: int, published: int, length: int = 0) -> FigureRow:
    return FigureRow(at, 60_000, [published], [length], [[published, 0]])


def figures_at(at: StoreProcess) -> PastFigures:
    return PastFigures(at.store, at.reader)


async def test_another_process_has_what_the_one_before_has_written(at: StoreProcess) -> None:
    before = figures_at(at)
    await before.load()
    before.note(a_row(NOON, 3, 7), {RankingKind.SENDERS: Ranking({"joe/1": 3}, 1)})
    await before.write()
    after = figures_at(at)
    await after.load()
    after.note(a_row(NOON, 2, 5), {RankingKind.SENDERS: Ranking({"joe/1": 1, "ann/1": 1})})
    after.note(a_row(NOON + 1, 4, 9), {})
    rows = [*after.rows(MINUTES, NOON - 5, NOON + 5)]
    assert [(row.at - NOON, row.counts, row.lengths) for row in rows] == [
        (0, [5], [7]),
        (1, [4], [9]),
    ]
    [hour] = after.rows(HOURS, NOON, NOON + 2)
    assert (hour.at, hour.counts, hour.lengths, hour.times) == (NOON, [9], [9], [[9, 0]])
    assert hour.served_ms == 180_000
    ranked = after.ranked(RankingKind.SENDERS, NOON, NOON + 1, NOON)
    assert (ranked.ranking.first(), ranked.ranking.missing) == ([("joe/1", 4), ("ann/1", 1)], 1)
    assert (ranked.since, ranked.until) == (NOON, NOON + 60)


async def test_what_cannot_be_written_now_is_written_later(valkey: ValkeyServer) -> None:
    async with store_process(valkey) as at:
        figures = figures_at(at)
        await figures.load()
        figures.note(a_row(NOON, 3), {})
        valkey.kill()
        with pytest.raises(StoreUnavailable):
            await figures.write()
        # Ten minutes without a store are in memory.
        for minute in range(1, 11):
            figures.note(a_row(NOON + minute, minute), {})
        assert [row.counts for row in figures.rows(MINUTES, NOON, NOON + 11)] == [
            [3],
            *[[minute] for minute in range(1, 11)],
        ]


async def test_fields_of_any_name_are_no_fault(at: StoreProcess) -> None:
    before = figures_at(at)
    before.note(a_row(NOON, 3), {})
    await before.write()
    key, field = at.store.keys.figures, MINUTES.field(NOON)
    await at.reader.ask("HSET", key, b"\xff", before._records[field])
    after = figures_at(at)
    await after.load()
    assert [row.counts for row in after.rows(MINUTES, NOON, NOON + 1)] == [[3]]


async def test_names_that_all_came_too_seldom_leave_what_they_lack(at: StoreProcess) -> None:
    figures = figures_at(at)
    figures.note(a_row(NOON, 5000), {RankingKind.SENDERS: Ranking({}, 7)})
    figures.note(a_row(NOON, 5000), {RankingKind.SENDERS: Ranking({"joe/1": 9}, 2)})
    ranking = figures.ranked(RankingKind.SENDERS, NOON, NOON + 1, NOON).ranking
    assert (ranking.counts, ranking.missing) == ({"joe/1": 9}, 9)


async def test_a_place_is_taken_by_the_next_day(at: StoreProcess) -> None:
    figures = figures_at(at)
    figures.note(a_row(NOON, 1), {})
    figures.note(a_row(NOON + DAY, 2), {})
    assert [row.counts for row in figures.rows(MINUTES, NOON, NOON + 2 * DAY)] == [[2]]
    assert [row.counts for row in figures.rows(HOURS, NOON, NOON + 2 * DAY)] == [[1], [2]]


@pytest.mark.slow
@pytest.mark.valkey
async def test_a_month_of_the_largest_numbers_has_room(at: StoreProcess) -> None:
    figures, digits = figures_at(at), random.Random(1)
    most = 1 << 60
    buckets = [[most] * (len(bounds) + 1) for bounds in TIMES.values()]
    # The minutes of a day, and an hour of each other one; with other names in each.
    minutes = [*range(NOON - 30 * DAY, NOON - DAY, 60), *range(NOON - DAY, NOON)]
    for at_minute in minutes:
        row = FigureRow(at_minute, most, [most] * len(COUNTS), [most] * len(LENGTHS), buckets)
        is_hour = at_minute % 60 == 0
        names = {f"/{digits.getrandbits(64):x}".ljust(40, "x"): most + n for n in range(64)}
        figures.note(row, dict.fromkeys(RankingKind, Ranking(names)) if is_hour else {})
    await figures.write()
    used = await at.reader.ask("MEMORY", "USAGE", at.store.keys.figures, "SAMPLES", 0)
    fields = await at.reader.ask("HLEN", at.store.keys.figures)
    assert fields == 24 * 60 + 30 * 24 + len(RankingKind) * (48 + 31)
    assert 1_000_000 < used <= MOST_BYTES


def test_the_histograms_are_those_that_are_measured() -> None:
    assert {*TIMES.values()} == {WAITS_S, STEPS_S}


@given(
    notes=st.lists(
        st.tuples(st.integers(-200, 200), st.integers(0, 50), st.integers(0, 9)), max_size=30
    )
)
def test_hours_are_the_sums_of_their_minutes(notes: list[tuple[int, int, int]]) -> None:
    """Whatever the clock does: minutes may come again, and in any order."""
    figures = PastFigures.__new__(PastFigures)
    figures._records, figures._begins, figures._unwritten = {}, {}, {}
    by_minute, by_hour = Counter[int](), Counter[int]()
    for offset, published, length in notes:
        at = NOON + offset
        figures.note(a_row(at, published, length), {})
        by_minute[at] += published
        by_hour[at - at % 60] += published
    whole = NOON - 300, NOON + 300
    assert {row.at: row.counts[0] for row in figures.rows(MINUTES, *whole)} == by_minute
    assert {row.at: row.counts[0] for row in figures.rows(HOURS, *whole)} == by_hour
    for row in figures.rows(HOURS, *whole):
        inside = [each for each in notes if 0 <= NOON + each[0] - row.at < 60]
        assert row.lengths == [max(length for _, _, length in inside)]
        assert row.times == [[row.counts[0], 0]]
        assert row.served_ms == 60_000 * len(inside)
