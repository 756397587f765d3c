"""The form of past figures in the store."""

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.ranking import Ranking
from holdfast.store.format.figure_records import (
    FigureRow,
    UnknownRecord,
    begin_of,
    pack_ranking,
    pack_row,
    short,
    unpack_ranking,
    unpack_row,
)

NUMBERS = st.integers(0, (1 << 28) - 1)
SOME = st.lists(NUMBERS, max_size=5)
ROWS = st.builds(FigureRow, NUMBERS, NUMBERS, SOME, SOME, st.lists(SOME, max_size=4))
RANKINGS = st.builds(Ranking, st.dictionaries(st.text(max_size=20), NUMBERS), NUMBERS)


@given(row=ROWS)
def test_a_row_is_read_as_it_was_written(row: FigureRow) -> None:
    for minutes in (1, 60):
        assert unpack_row(pack_row(row, minutes)) == row


@given(at=NUMBERS, ranking=RANKINGS)
def test_a_ranking_is_read_as_it_was_written(at: int, ranking: Ranking) -> None:
    known, found = unpack_ranking(pack_ranking(at, ranking))
    assert (known, found.counts, found.missing) == (at, ranking.counts, ranking.missing)


def test_a_row_of_a_release_with_fewer_figures_can_be_added_to() -> None:
    row = FigureRow(1, 5, [1], [2], [[3]])
    row.add(FigureRow(1, 5, [1, 1], [1, 1], [[1, 1], [1]]))
    assert row == FigureRow(1, 10, [2, 1], [2, 1], [[4, 1], [1]])
    row.add_shard(FigureRow(1, 7, [1], [1], []))
    assert row == FigureRow(1, 10, [3, 1], [3, 1], [[4, 1], [1]])


def test_larger_numbers_than_fit_are_the_largest_that_do() -> None:
    row = FigureRow(1, 1, [1 << 60], [1 << 60], [[1 << 60]])
    found = unpack_row(pack_row(row, 1))
    assert (found.counts, found.lengths, found.times) == (
        [(1 << 35) - 1],
        [(1 << 35) - 1],
        [[(1 << 28) - 1]],
    )


def test_a_ranking_with_long_names_has_fewer_and_says_what_they_lack() -> None:
    counts = {short(f"/{n}" + "x" * 1000): 100 + n for n in range(64)}
    record = pack_ranking(7, Ranking(counts))
    _, found = unpack_ranking(record)
    assert len(record) <= 2048
    assert 15 < len(found.counts) < len(counts)
    for name, count in counts.items():
        known = found.counts.get(name, 0)
        assert known <= count <= known + found.missing


def test_long_names_stay_apart() -> None:
    names = ["/" + "é" * 500 + end for end in ("a", "b")]
    shorter = [short(name) for name in names]
    assert shorter[0] != shorter[1]
    assert all(len(each.encode()) <= 100 for each in shorter)
    assert short("/news") == "/news"


def test_a_record_of_a_later_release_is_refused() -> None:
    body = b"\x02" + pack_row(FigureRow(1, 1, [], [], []), 1)[1:-4]
    with pytest.raises(UnknownRecord):
        unpack_row(body + crc32(body).to_bytes(4))
    with pytest.raises(UnknownRecord):
        unpack_ranking(b"")


@given(row=ROWS, place=st.integers(0, 1 << 20), bit=st.integers(0, 7))
def test_a_damaged_record_is_refused(row: FigureRow, place: int, bit: int) -> None:
    record = bytearray(pack_row(row, 1))
    record[place % len(record)] ^= 1 << bit
    with pytest.raises(UnknownRecord):
        begin_of(bytes(record))
