"""Deadlines in buckets of a tenth of a second."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.delivery.basics.timers import Timed, Timers
from tests.effort import TIMES


def test_nothing_rings_if_nothing_was_set() -> None:
    assert Timers[Timed]().ring(100.0) == []


def test_an_item_rings_within_a_tenth_of_a_second_after_its_deadline() -> None:
    timers, item = Timers[Timed](), Timed()
    timers.ring_by(item, 5.0)
    assert timers.ring(4.9) == []
    assert timers.ring(5.0) == []
    assert timers.ring(5.1) == [item]


def test_an_item_rings_once() -> None:
    timers, item = Timers[Timed](), Timed()
    timers.ring_by(item, 5.0)
    assert timers.ring(6.0) == [item]
    assert item.alarm == 0
    assert timers.ring(7.0) == []


def test_an_item_that_rang_can_be_set_again() -> None:
    timers, item = Timers[Timed](), Timed()
    timers.ring_by(item, 5.0)
    timers.ring(6.0)
    timers.ring_by(item, 7.0)
    assert timers.ring(7.1) == [item]


def test_an_item_with_a_later_deadline_still_rings_at_the_earlier_one() -> None:
    timers, item = Timers[Timed](), Timed()
    timers.ring_by(item, 5.0)
    timers.ring_by(item, 50.0)
    assert timers.ring(5.1) == [item]
    assert timers.ring(51.0) == []


def test_an_item_with_an_earlier_deadline_rings_then() -> None:
    timers, item = Timers[Timed](), Timed()
    timers.ring_by(item, 50.0)
    timers.ring_by(item, 5.0)
    assert timers.ring(5.1) == [item]
    assert timers.ring(51.0) == []


def test_a_dropped_item_does_not_ring() -> None:
    timers, item, other = Timers[Timed](), Timed(), Timed()
    timers.ring_by(item, 5.0)
    timers.ring_by(other, 5.0)
    timers.drop(item)
    assert timers.ring(6.0) == [other]


def test_dropping_an_item_without_a_deadline_changes_nothing() -> None:
    timers, item = Timers[Timed](), Timed()
    timers.drop(item)
    assert item.alarm == 0
    assert timers.ring(6.0) == []


def test_an_item_with_a_deadline_in_the_past_rings_next() -> None:
    timers, item = Timers[Timed](), Timed()
    timers.ring(100.0)
    timers.ring_by(item, 5.0)
    assert timers.ring(100.1) == [item]


def test_ring_returns_at_most_as_many_items_as_asked_and_the_others_later() -> None:
    timers, items = Timers[Timed](), [Timed() for _ in range(5)]
    for number, item in enumerate(items):
        timers.ring_by(item, 5.0 + number % 2)
    rung = timers.ring(9.0, most=2) + timers.ring(9.0, most=2)
    assert len(rung) == 4
    assert timers.ring(9.0, most=0) == []
    rung += timers.ring(9.0, most=2)
    assert set(rung) == set(items)
    assert len(rung) == 5


def test_items_left_in_a_bucket_can_be_moved_and_dropped() -> None:
    timers, items = Timers[Timed](), [Timed() for _ in range(3)]
    for item in items:
        timers.ring_by(item, 5.0)
    (rung,) = timers.ring(6.0, most=1)
    first, second = (item for item in items if item is not rung)
    timers.ring_by(first, 1.0)
    timers.drop(second)
    assert timers.ring(6.0) == [first]


@pytest.mark.slow
def test_a_deadline_that_was_moved_very_often_takes_no_memory() -> None:
    timers, item, other = Timers[Timed](), Timed(), Timed()
    timers.ring_by(other, 10**9)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for second in range(10_000):
        timers.ring_by(item, float(10**8 - second))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000
    timers.drop(item)
    assert timers.ring(10**10) == [other]


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), max_size=30))
@settings(max_examples=20 * TIMES)
def test_every_item_rings_soon_after_the_earliest_deadline_that_it_was_given(
    calls: list[tuple[int, int]],
) -> None:
    timers, items = Timers[Timed](), [Timed() for _ in range(5)]
    earliest: dict[int, int] = {}
    for number, due in calls:
        timers.ring_by(items[number], due / 10)
        earliest[number] = min(due, earliest.get(number, due))
    for tenth in range(45):
        rung = {items.index(item) for item in timers.ring(tenth / 10)}
        due_now = {number for number, due in earliest.items() if due < tenth}
        assert rung == due_now
        for number in rung:
            del earliest[number]
