"""Timestamps: they rise whatever the clock does, and name their shard."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.node import SHARD, TimestampSource

NOW = 1_763_000_000_123_456_789
# What an earlier process may have returned last, by whatever release.
newest = st.integers(NOW - 10**9, NOW + 10**9)
# The clock at each call: it stands still, steps back, or jumps forward.
clocks = st.lists(st.integers(NOW - 10**10, NOW + 10**10), min_size=1, max_size=30)
shards = st.integers(0, 999)


def reader(times: Iterator[int]) -> Callable[[], int]:
    return lambda: next(times)


@given(newest, clocks, shards)
def test_timestamps_rise_by_a_microsecond_at_least_whatever_the_clock_does(
    before: int, times: list[int], shard: int
) -> None:
    stamp = TimestampSource(before, reader(iter(times)), shard)
    made = [stamp() for _ in times]
    assert all(late // 1000 > early // 1000 for early, late in pairwise([before, *made]))


@given(newest, clocks, shards)
def test_the_last_three_digits_of_a_timestamp_are_its_shard(
    before: int, times: list[int], shard: int
) -> None:
    stamp = TimestampSource(before, reader(iter(times)), shard)
    assert {stamp() % 1000 for _ in times} == {shard}


@given(newest, clocks, st.sets(shards, min_size=2, max_size=4))
def test_no_two_shards_return_the_same_timestamp(
    before: int, times: list[int], some: set[int]
) -> None:
    made = [
        {stamp() for _ in times}
        for stamp in (TimestampSource(before, reader(iter(times)), shard) for shard in some)
    ]
    assert len(set().union(*made)) == len(some) * len(times)


@given(newest, st.lists(clocks, min_size=2, max_size=4))
def test_no_process_repeats_the_timestamps_of_another(before: int, lives: list[list[int]]) -> None:
    made: list[int] = []
    for times in lives:
        stamp = TimestampSource(max([before, *made]), reader(iter(times)))
        made += [stamp() for _ in times]
    assert len(set(made)) == len(made)


@given(newest, st.lists(st.tuples(clocks.map(max), st.none() | newest), min_size=1, max_size=30))
def test_timestamps_are_above_all_that_were_heard_of(
    before: int, steps: list[tuple[int, int | None]]
) -> None:
    now = [NOW]
    stamp = TimestampSource(before, lambda: now[0], shard=7)
    known = [before]
    for time, heard in steps:
        now[0] = time
        if heard is not None:
            stamp.hear(heard)
            known.append(heard)
        known.append(stamp())
        assert known[-1] // 1000 > max(known[:-1]) // 1000
        assert known[-1] % 1000 == 7


def test_a_clock_that_has_heard_of_a_later_time_is_slower_until_it_is_right() -> None:
    now, second = [NOW], 10**9
    stamp = TimestampSource(0, lambda: now[0])
    stamp.hear(NOW + 3 * second)
    ahead = []
    for _ in range(8):
        now[0] += second
        ahead.append(round((stamp() - now[0]) / second, 3))
    assert ahead == [2.5, 2.0, 1.5, 1.0, 0.5, 0.0, 0.0, 0.0]


def test_a_clock_that_has_heard_of_an_earlier_time_shows_the_same_as_before() -> None:
    stamp = TimestampSource(0, lambda: NOW)
    stamp.hear(NOW - 10**9)
    assert stamp() == NOW // 1000 * 1000


def test_a_clock_that_is_ahead_stays_so_if_the_wall_clock_is_set_back() -> None:
    now, second = [NOW], 10**9
    stamp = TimestampSource(0, lambda: now[0])
    stamp.hear(NOW + 3 * second)
    first = stamp()
    now[0] -= 60 * second
    assert first < stamp() < first + second


def test_a_timestamp_is_the_time_if_the_clock_has_moved_on() -> None:
    stamp = TimestampSource(NOW - 10**9, lambda: NOW, shard=7)
    assert stamp() == NOW // 1000 * 1000 + 7


def test_a_server_by_itself_is_shard_0() -> None:
    assert (SHARD, TimestampSource(0, lambda: NOW)() % 1000) == (0, 0)


def test_a_clock_that_skips_times_is_ahead_of_the_wall_clock_by_all_of_them() -> None:
    now = [NOW]
    shown = NOW // 1000 * 1000
    stamp = TimestampSource(0, lambda: now[0])
    stamp.skip(3_600 * 10**9)
    assert stamp() == shown + 3_600 * 10**9
    stamp.skip(10**9)
    now[0] += 10**9
    assert stamp() == shown + 3_602 * 10**9


@given(newest, clocks, shards)
def test_to_read_the_time_changes_no_timestamp(before: int, times: list[int], shard: int) -> None:
    wall_ns = [NOW]
    one, other = (TimestampSource(before, lambda: wall_ns[0], shard) for _ in range(2))
    for wall_ns[0] in times:
        assert other.read() == wall_ns[0]
        assert one() == other()
