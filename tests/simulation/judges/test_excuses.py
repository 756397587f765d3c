"""What faults excuse, for how long, and how much of what judges see."""

import pytest

from tests.simulation.coverage import Report
from tests.simulation.judges.excuses import HEALS_S, Excuses


@pytest.mark.parametrize(("fault", "longer_s"), [("kill_server", 0.0), ("lose_connection", 6.0)])
def test_a_fault_excuses_for_as_long_as_its_kind_has_effects(fault: str, longer_s: float) -> None:
    excuses = Excuses()
    excuses.add(fault, 10.0, 1.0)
    assert excuses.in_force(9.0, 9.9) is None
    at = 11.2 + HEALS_S + longer_s
    assert excuses.in_force(at - 0.1, at) == fault
    assert excuses.in_force(30.0, 30.0) is None
    assert excuses.number_of(fault, 11.1, 30.0) == 0


def test_what_a_long_fault_has_gathered_takes_longer() -> None:
    excuses = Excuses()
    excuses.add("kill_server", 10.0, 20.0)
    assert excuses.in_force(39.9, 39.9) == "kill_server"
    excuses.add("freeze_server", 50.0, 90.0)
    assert excuses.in_force(154.9, 154.9) == "freeze_server"
    assert excuses.in_force(155.1, 155.1) is None


@pytest.mark.parametrize(
    ("fault", "since", "is_longer"),
    [("freeze_server", 9.0, True), ("freeze_server", 17.0, False), ("set_clock", 9.0, False)],
)
def test_whoever_stands_still_hears_of_a_fault_later(
    *, fault: str, since: float, is_longer: bool
) -> None:
    excuses = Excuses()
    excuses.add("cut_power_of_store", 10.0, 0.1)
    excuses.add(fault, since, 10.0)
    assert (excuses.in_force(20.0, 20.0, only=("cut_power_of_store",)) is not None) is is_longer


def report_of(worlds: int, excused: int) -> Report:
    report = Report(())
    for _ in range(worlds):
        report.count({"answer": 10, "name": 5}, {"answer 503: kill_server": excused})
    return report


def test_a_judge_that_excuses_more_than_a_third_of_what_it_sees_is_asleep() -> None:
    assert report_of(400, 3).asleep == []
    assert report_of(400, 4).asleep == ["answer"]
    assert report_of(2, 10).asleep == []
    assert " 40.0%  of what the judge of each answer saw is excused" in report_of(400, 4).lines()


def test_a_client_that_asks_again_and_again_puts_no_judge_to_sleep() -> None:
    report = report_of(400, 1)
    report.count({"answer": 100_000}, {"answer lost: kill_supervisor": 100_000})
    assert report.asleep == []
