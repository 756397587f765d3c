"""Histograms count every time in the bucket that it belongs to."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.times import NS_PER_S, WAITS_S, Example, Histogram

BOUNDS_S = (0.001, 0.01, 1.0)
# Around the bounds, and in runs.
times = st.lists(
    st.sampled_from([0, 1, 999_999, 1_000_000, 1_000_001, 10_000_000, NS_PER_S, NS_PER_S + 1])
)


@given(times, st.integers(0, 8))
def test_each_bucket_has_the_times_up_to_its_bound(ns: list[int], read_after: int) -> None:
    histogram = Histogram(BOUNDS_S)
    for place, each in enumerate(ns):
        histogram.add(each)
        if place == read_after:
            histogram.read()
    up_to = [sum(each <= bound * NS_PER_S for each in ns) for bound in BOUNDS_S]
    assert histogram.read() == [*up_to, len(ns)]
    assert histogram.read() == [*up_to, len(ns)]
    assert histogram.total_ns == sum(ns)


def test_a_bucket_has_its_first_message_since_a_reading_as_its_example() -> None:
    histogram = Histogram(BOUNDS_S)
    for id, ns in enumerate((5, 6, 2 * NS_PER_S, 7, 8), 100):
        histogram.add(ns, id)
    examples = [Example(100, 5), None, None, Example(102, 2 * NS_PER_S)]
    assert histogram.examples == examples
    histogram.read()
    assert histogram.examples == examples
    histogram.add(9, 105)
    assert histogram.examples[0] == Example(105, 9)


def test_times_without_a_message_leave_no_example() -> None:
    histogram = Histogram(BOUNDS_S)
    histogram.add(5)
    assert histogram.examples == [None] * 4


def test_bounds_rise() -> None:
    assert [*WAITS_S] == sorted({*WAITS_S})
