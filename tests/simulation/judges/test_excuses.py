"""How much of what judges see faults may excuse."""

from tests.simulation.coverage import Report


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
