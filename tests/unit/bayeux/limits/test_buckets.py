"""Buckets give what a naive token bucket gives, whatever is taken when."""

from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.limits.buckets import Buckets, Rate


@dataclass
class Naive:
    """A bucket with a number of tokens, filled up at each take."""

    rate: Rate
    level: Fraction
    at: Fraction

    def take(self, now: Fraction, count: int) -> Fraction:
        gained = (now - self.at) * Fraction(self.rate.per_s)
        self.level, self.at = min(Fraction(self.rate.burst), self.level + gained), now
        wanted = min(count, self.rate.burst)
        if wanted > self.level:
            return (wanted - self.level) / Fraction(self.rate.per_s)
        self.level -= wanted
        return Fraction(0)


# Steps of time that give exact fractions of a token, so that nothing is rounded.
STEP = Fraction(1, 8)
RATES = st.builds(Rate, burst=st.integers(1, 12), per_s=st.sampled_from([0.5, 1.0, 2.0, 8.0]))
TAKES = st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.integers(1, 14))


@pytest.mark.slow
@given(RATES, st.lists(TAKES, max_size=80))
def test_each_key_gets_what_a_bucket_of_its_own_would_give(
    rate: Rate, takes: list[tuple[str, int, int]]
) -> None:
    buckets, now = Buckets(rate), Fraction(1000)
    naive = {key: Naive(rate, Fraction(rate.burst), now) for key in "abc"}
    for key, steps, count in takes:
        now += steps * STEP
        expected = naive[key].take(now, count)
        assert (buckets.wait_s(key, float(now), count) > 0) == (expected > 0)
        assert buckets.take(key, float(now), count) == float(expected)


def test_a_full_bucket_gives_exactly_its_tokens_at_any_rate_and_time() -> None:
    for per_s in (0.3, 1 / 3, 7.0, 2000.0, 16 * 1024.0**2):
        for now in (0.0, 0.1, 12345.678, 987_654_321.123):
            buckets = Buckets(Rate(burst=30, per_s=per_s))
            given_out = [buckets.take("a", now) == 0.0 for _ in range(40)]
            assert given_out == [True] * 30 + [False] * 10


def test_a_refused_take_costs_nothing_and_succeeds_after_the_returned_wait() -> None:
    buckets = Buckets(Rate(burst=4, per_s=0.5))
    assert buckets.take("a", 100.0, 4) == 0.0
    for _ in range(3):
        assert buckets.take("a", 100.0, 2) == 4.0
    assert buckets.take("a", 104.0, 2) == 0.0


def test_a_take_larger_than_the_bucket_empties_a_full_one() -> None:
    buckets = Buckets(Rate(burst=4, per_s=1.0))
    assert buckets.take("a", 100.0, 50) == 0.0
    assert buckets.take("a", 103.0, 50) == 1.0
    assert buckets.take("a", 104.0, 50) == 0.0


def test_full_buckets_are_not_remembered() -> None:
    buckets = Buckets(Rate(burst=4, per_s=1.0))
    for second in range(1000):
        buckets.take(f"key {second}", float(second))
        assert len(buckets) <= 9


def test_a_limited_number_of_buckets_is_remembered_and_a_busy_one_stays() -> None:
    buckets = Buckets(Rate(burst=4, per_s=1.0), most=10)
    for number in range(1000):
        buckets.take(f"key {number}", 100.0)
        wait_s = buckets.take("greedy", 100.0)
        assert (wait_s > 0.0) == (number >= 4)
        assert len(buckets) <= 20
