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


def test_a_timestamp_is_the_time_if_the_clock_has_moved_on() -> None:
    stamp = TimestampSource(NOW - 10**9, lambda: NOW, shard=7)
    assert stamp() == NOW // 1000 * 1000 + 7


def test_a_server_by_itself_is_shard_0() -> None:
    assert (SHARD, TimestampSource(0, lambda: NOW)() % 1000) == (0, 0)
