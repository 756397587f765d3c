"""A judge that excuses nearly all that it sees judges nothing."""

import pytest

from tests.simulation.coverage import Report


@pytest.mark.parametrize(
    ("worlds", "asleep"),
    [
        # Of one world, by chance, everything; each of its holds for many messages.
        ([(2, 12), *[(3, 0)] * 7], []),
        ([(2, 2)] * 8, ["hold"]),
        ([(10, 6)] * 8, []),
        ([(10, 6)] * 100, ["hold"]),
        ([(0, 0)] * 8, []),
    ],
)
def test_a_judge_must_not_excuse_too_much(worlds: list[tuple[int, int]], asleep: list[str]) -> None:
    report = Report(())
    for seen, excused in worlds:
        report.count({"hold": seen}, {"hold: several clocks": excused})
    assert report.asleep == asleep
