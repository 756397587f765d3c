"""Runs: when a process starts, the earlier runs of its node are over."""

from holdfast.pipeline.census import Group
from holdfast.pipeline.runs import runs_of


def group(
    epoch: str, since: int, start: int | None = None, node: str = "n1", *, goes_on: bool = False
) -> Group:
    return Group(node, epoch, "node", 1, int(goes_on), since, start, start)


def test_a_run_ends_with_the_next_start_of_its_node() -> None:
    runs = runs_of(
        [
            group("seed-1", 10, 10),
            group("seed-2", 20, 21),
            group("seed-2", 19),
            group("seed-3", 30, 30),
            group("seed-9", 5, 5, node="n2"),
        ]
    )
    assert runs.over_us == {"n1/seed-1": 21, "n1/seed-2": 30}
    assert runs.first_us == {"n1": 10, "n2": 5}


def test_a_run_that_lost_its_store_for_a_while_continues() -> None:
    assert runs_of([group("seed-1", 10, 10), group("seed-2", 20)]).over_us == {}
    again = runs_of([group("seed-1", 10, 10), group("seed-2", 20), group("seed-10", 40, 40)])
    assert again.over_us == {"n1/seed-1": 40, "n1/seed-2": 40}


def test_runs_before_and_after_the_emptying_of_a_store_end_with_the_next_start() -> None:
    runs = runs_of([group("seed-7", 10, 10), group("other-1", 20), group("other-2", 30, 30)])
    assert runs.over_us == {"n1/seed-7": 30, "n1/other-1": 30}


def test_epochs_of_unknown_form_are_runs_too() -> None:
    assert runs_of([group("", 10), group("x", 20, 20)]).over_us == {"n1/": 20}


def test_nothing_is_lost_at_a_start_that_goes_on_with_everything() -> None:
    first, second = group("seed-1", 10, 10), group("seed-2", 20, 20, goes_on=True)
    runs = runs_of([first, second])
    assert (runs.over_us, runs.start_seq) == ({}, {"n1/seed-1": 10})
    again = runs_of([first, second, group("seed-3", 30, 30)])
    assert again.over_us == {"n1/seed-1": 30, "n1/seed-2": 30}
    assert runs_of([second, group("seed-3", 30, 30)]).first_us == {"n1": 30}
    assert runs_of([second]).first_us == {}


def test_a_number_of_another_kind_says_nothing_about_a_start() -> None:
    other = Group("n1", "seed-2", "books", 1, 7, 20, None, None)
    assert runs_of([group("seed-1", 10, 10), group("seed-2", 20, 20), other]).over_us == {
        "n1/seed-1": 20
    }
