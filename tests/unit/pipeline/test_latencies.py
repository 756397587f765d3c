"""Histograms of latencies are as exact as they claim to be."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.pipeline.latencies import latencies, rounded
from tests.unit.pipeline.events import event, published
from tests.unit.pipeline.framed_events import made_of, one_run
from tests.unit.pipeline.stories import acked, died, handed

# An hour and more.
TIMES = some.integers(0, 10**10)


def quantile(times: Sequence[int], part: float) -> int:
    """The smallest time that this part of all times does not exceed."""
    return sorted(times)[max(0, math.ceil(part * len(times)) - 1)]


@given(some.lists(TIMES, min_size=1, max_size=50), some.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_every_percentile_is_within_one_percent_of_the_exact_one(
    times: list[int], part: float
) -> None:
    found = quantile(rounded(np.array(times)).tolist(), part)
    exact = quantile(times, part)
    # Times are whole numbers, so half a microsecond may be lost.
    assert abs(found - exact) <= 0.01 * exact + 0.5


@pytest.mark.slow
def test_a_histogram_of_all_times_up_to_an_hour_has_fewer_than_1200_rows() -> None:
    times = np.arange(0, 3_600_000_000, 9973)
    assert len(np.unique(rounded(times))) < 1200


@pytest.mark.slow
def test_latencies_are_counted_by_hour_and_channel_without_replays() -> None:
    told = [published(1, 2, "/a"), published(2, 1, "/b"), published(3600, 1, "/a")]
    told += [handed(1.01, 1, "ann/1"), acked(1.05, 1, "ann/1"), handed(1.01, 1, "bob/1")]
    told += died(1.1, 1, "bob/1")
    told += [event("replayed", 9, 1, receiver="bob/1", letter=1, generation=1)]
    told += [handed(9.5, 1, "bob/1"), acked(9.6, 1, "bob/1")]
    # One copy is in flight, and the other was never handed over.
    told += [handed(2.5, 2, "ann/1")]
    told += [handed(3600, 3600, "ann/1"), acked(3600, 3600, "ann/1")]
    table = latencies(made_of(one_run(told)).life)
    found = {
        (row["hour"].hour, row["channel"], row["what"], row["us"]): row["n"]
        for row in table.to_pylist()
    }
    ten_ms, forty_ms, fifty_ms = rounded(np.array([10_000, 40_000, 50_000])).tolist()
    assert found == {
        (10, "/a", "delivery", ten_ms): 2,
        (10, "/a", "answer", forty_ms): 1,
        (10, "/a", "critical", fifty_ms): 1,
        (11, "/a", "delivery", 0): 1,
        (11, "/a", "answer", 0): 1,
        (11, "/a", "critical", 0): 1,
    }


def test_lives_without_a_hand_over_have_no_histogram() -> None:
    life = made_of(one_run([published(1, 1)])).life
    assert not len(latencies(life.filter(pa.array(np.zeros(len(life), bool)))))
    assert pc.sum(latencies(life)["n"]).as_py() is None
