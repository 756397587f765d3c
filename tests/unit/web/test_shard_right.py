"""A shard that did not run for a while is silent until it has caught up with the others."""

from typing import TYPE_CHECKING

from holdfast.web.scheduling.speaking import ShardRight

if TYPE_CHECKING:
    from collections.abc import Callable


class Shard:
    """The right of a shard, by a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.right = ShardRight(lambda: self.now)
        self.catching_up: list[Callable[[], None]] = []
        self.right.catch_up = self.catching_up.append

    def freeze(self, seconds: float) -> None:
        self.now += seconds


def test_a_shard_that_runs_speaks_and_has_nothing_to_catch_up_with() -> None:
    at = Shard()
    for _ in range(10):
        at.freeze(2.4)
        assert at.right.may_speak()
    assert at.catching_up == []


def test_after_a_freeze_it_is_silent_until_it_has_caught_up() -> None:
    at, spoken = Shard(), list[int]()
    at.freeze(2.6)
    assert not at.right.may_speak()
    at.right.when_speaking(lambda: spoken.append(1))
    at.freeze(4.0)
    assert not at.right.may_speak()
    assert (len(at.catching_up), spoken) == (1, [])
    at.catching_up.pop()()
    assert at.right.may_speak()
    assert spoken == [1]
    assert (at.right.silences, round(at.right.silent_s, 1)) == (1, 6.6)


def test_a_shard_that_leaves_stays_silent_when_it_has_caught_up() -> None:
    at = Shard()
    at.right.leave()
    at.freeze(2.6)
    assert not at.right.may_speak()
    at.catching_up.pop()()
    assert at.right.is_silent
    at.right.stay()
    assert not at.right.is_silent


def test_a_shard_that_stays_speaks_when_it_has_caught_up() -> None:
    at = Shard()
    at.freeze(2.6)
    assert not at.right.may_speak()
    at.right.leave()
    at.right.stay()
    assert at.right.is_silent
    at.catching_up.pop()()
    assert at.right.may_speak()
