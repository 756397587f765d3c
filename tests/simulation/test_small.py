"""Limits that are drawn small hold wherever servers look at them, and for as long as a world."""

from holdfast.cluster import frames
from holdfast.web.scheduling import turn_budget
from tests.simulation.coverage import Coverage
from tests.simulation.small import LIMITS, REACHED, mark_of, small_limits


def test_a_small_limit_is_a_default_too_and_notes_what_reaches_it() -> None:
    real, found = frames.MOST_BYTES, 0
    for seed in range(100):
        coverage = Coverage()
        with small_limits(seed, coverage):
            (default,) = frames.split.__defaults__ or ()
            assert default is frames.MOST_BYTES
            if real == frames.MOST_BYTES:
                continue
            found += 1
            limit = frames.MOST_BYTES
            assert limit >= 1
            assert not coverage.marks
            assert limit < real
            assert coverage.marks == {mark_of("cluster.frames", "MOST_BYTES")}
    assert 0 < found < 50
    assert real == frames.MOST_BYTES


def test_a_seed_decides_which_limits_are_small() -> None:
    def drawn(seed: int) -> float:
        with small_limits(seed, Coverage()):
            return float(turn_budget._TURN_S)

    found = [drawn(seed) for seed in range(50)]
    assert found == [drawn(seed) for seed in range(50)]
    assert len({*found}) > 2


def test_what_must_be_reached_is_drawn() -> None:
    assert {*REACHED} < {*LIMITS}
