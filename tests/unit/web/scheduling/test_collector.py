"""Cyclic garbage is found: soon if it is new, otherwise in a quiet moment."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from holdfast.web.scheduling import collector
from holdfast.web.scheduling.collector import Collector

pytestmark = pytest.mark.slow


class Loop:
    """An object that only itself refers to when its name is gone."""

    def __init__(self) -> None:
        self.itself = self


class Work:
    """How long the thread has worked; a collection takes `collection_s`."""

    def __init__(self) -> None:
        self.s = 0.0
        self.collection_s = 0.0

    def __call__(self) -> float:
        return self.s

    def collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            self.s += self.collection_s


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.enable()
    # What all other tests need is exempt again: each collection would take half a second.
    gc.freeze()


@pytest.fixture
def work() -> Iterator[Work]:
    work = Work()
    gc.callbacks.append(work.collected)
    yield work
    gc.callbacks.remove(work.collected)


def begun(work: Work) -> Collector:
    collector = Collector(work)
    collector.begin()
    collector.exempt()
    # No collections but those of the test.
    gc.disable()
    return collector


def look_at_new(times: int) -> None:
    for _ in range(times):
        gc.collect(0)


def beat(collector: Collector, work: Work, times: int, *, worked_s: float, queued: int = 0) -> None:
    for _ in range(times):
        work.s += worked_s
        collector.beat(queued)


def is_looked_at(thing: object) -> bool:
    """Whether the next collection visits this: it is tracked, and not exempt."""
    return any(each is thing for each in gc.get_objects())


def left_when_no_longer_new() -> "weakref.ref[Loop]":
    loop = Loop()
    look_at_new(1)
    return weakref.ref(loop)


def left_when_exempt(collector: Collector, work: Work) -> "weakref.ref[Loop]":
    """Garbage that became exempt, as it survived a long collection before."""
    loop = Loop()
    work.collection_s = 0.1
    look_at_new(1)
    beat(collector, work, 10, worked_s=0.001)
    work.collection_s = 0.0
    return weakref.ref(loop)


def test_new_garbage_is_found_while_the_server_works() -> None:
    Collector().begin()
    lost = weakref.ref(Loop())
    assert [[] for _ in range(50_000)]
    assert lost() is None


def test_restored_objects_are_visited_only_as_new_ones_and_then_become_exempt() -> None:
    looked_at: list[int] = []

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looked_at.append(info["generation"])

    collector = Collector()
    collector.begin()
    gc.callbacks.append(collected)
    restored: list[list[object]] = [[] for _ in range(200_000)]
    gc.callbacks.remove(collected)
    assert set(looked_at) == {0}
    collector.exempt()
    assert not is_looked_at(restored)


def test_older_garbage_is_found_in_a_quiet_second(work: Work) -> None:
    collector = begun(work)
    lost = left_when_no_longer_new()
    beat(collector, work, 20, worked_s=0.02)
    beat(collector, work, 9, worked_s=0.001)
    assert lost() is not None
    beat(collector, work, 1, worked_s=0.001)
    assert lost() is None


def test_a_server_that_is_never_quiet_finds_older_garbage_too(work: Work) -> None:
    collector = begun(work)
    lost = left_when_no_longer_new()
    look_at_new(10)
    beat(collector, work, 1, worked_s=0.02)
    look_at_new(8)
    beat(collector, work, 1, worked_s=0.02)
    assert lost() is not None
    look_at_new(1)
    beat(collector, work, 1, worked_s=0.02)
    assert lost() is None


def test_in_a_burst_all_objects_become_exempt_without_a_collection(work: Work) -> None:
    collector = begun(work)
    kept: list[int] = []
    lost = left_when_no_longer_new()
    work.collection_s = 0.1
    beat(collector, work, 10, worked_s=0.08)
    assert work.s == pytest.approx(0.8)
    assert not is_looked_at(kept)
    assert lost() is not None


def test_a_server_that_gets_little_time_in_a_burst_collects_nothing_either(work: Work) -> None:
    collector = begun(work)
    lost = left_when_no_longer_new()
    look_at_new(21)
    beat(collector, work, 1, worked_s=0.02)
    assert lost() is not None
    look_at_new(19)
    beat(collector, work, 1, worked_s=0.02)
    assert lost() is not None, "it is exempt"


def test_garbage_of_a_burst_is_found_in_a_quiet_minute(work: Work) -> None:
    collector = begun(work)
    lost = left_when_no_longer_new()
    beat(collector, work, 1, worked_s=0.08)
    beat(collector, work, 599, worked_s=0.001)
    assert lost() is not None
    beat(collector, work, 1, worked_s=0.001)
    assert lost() is None


def test_a_quiet_server_with_few_new_objects_collects_no_garbage(work: Work) -> None:
    collector = begun(work)
    lost = weakref.ref(Loop())
    beat(collector, work, 1_000, worked_s=0.001)
    assert lost() is not None


def test_objects_that_survive_a_long_collection_become_exempt(work: Work) -> None:
    collector = begun(work)
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    look_at_new(1)
    beat(collector, work, 10, worked_s=0.001)
    assert gc.get_freeze_count() == 0, "it was short"
    work.collection_s = 0.1
    look_at_new(1)
    beat(collector, work, 10, worked_s=0.001)
    assert gc.get_freeze_count() > 0


def test_queues_become_exempt_when_very_many_entries_were_added(work: Work) -> None:
    collector = begun(work)
    queue: list[int] = []
    beat(collector, work, 1, worked_s=0.02, queued=499_999)
    assert is_looked_at(queue)
    beat(collector, work, 1, worked_s=0.02, queued=500_000)
    assert not is_looked_at(queue)


def test_new_queues_become_exempt_after_as_many_more_entries(work: Work) -> None:
    collector = begun(work)
    beat(collector, work, 1, worked_s=0.02, queued=600_000)
    queue: list[int] = []
    beat(collector, work, 1, worked_s=0.02, queued=1_099_999)
    assert is_looked_at(queue)
    beat(collector, work, 1, worked_s=0.02, queued=1_100_000)
    assert not is_looked_at(queue)


def test_garbage_is_found_before_queues_become_exempt(work: Work) -> None:
    collector = begun(work)
    lost = weakref.ref(Loop())
    beat(collector, work, 1, worked_s=0.02, queued=500_000)
    assert lost() is None


def test_objects_that_become_exempt_with_queues_count_as_new(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "_VERY_MANY", 6_000)
    watched = begun(work)
    lost = left_when_exempt(watched, work)
    for times in range(1, 4):
        assert lost() is not None
        made: list[list[int]] = [[] for _ in range(2_000)]
        beat(watched, work, 1, worked_s=0.02, queued=times * 500_000)
        del made
    beat(watched, work, 1, worked_s=0.02, queued=1_500_000)
    assert lost() is None


def test_many_entries_without_new_objects_leave_exempt_garbage_alone(work: Work) -> None:
    collector = begun(work)
    lost = left_when_exempt(collector, work)
    for times in range(1, 600):
        beat(collector, work, 1, worked_s=0.02, queued=times * 500_000)
    assert lost() is not None


def test_exempt_garbage_is_found_in_a_quiet_minute(work: Work) -> None:
    collector = begun(work)
    lost = left_when_exempt(collector, work)
    look_at_new(1)
    beat(collector, work, 500, worked_s=0.001)
    assert lost() is not None
    beat(collector, work, 100, worked_s=0.001)
    assert lost() is None


def test_a_server_that_is_never_quiet_finds_exempt_garbage_too(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "_VERY_MANY", 25_000)
    watched = begun(work)
    lost = left_when_exempt(watched, work)
    look_at_new(48)
    beat(watched, work, 1, worked_s=0.02)
    assert lost() is not None
    look_at_new(1)
    beat(watched, work, 1, worked_s=0.02)
    assert lost() is None
