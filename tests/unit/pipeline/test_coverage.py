"""The unknowns of the audit: times of which not everything is known."""

from collections.abc import Iterable

from holdfast.pipeline.audit.coverage import Stretch, unknowns_of

MINUTE = 60_000_000


def unknowns(
    stretches: Iterable[Stretch], now_us: int = 0, heard_ms: int = 0
) -> list[tuple[str, int, int | None]]:
    return [
        (unknown.kind, unknown.since_us, unknown.until_us)
        for unknown in unknowns_of(stretches, {"n1": heard_ms}, now_us)
    ]


def run(epoch: str, start: int, last: int, *, stops: bool = True, node: str = "n1") -> Stretch:
    return Stretch(node, epoch, start, last, start, last, is_stopped=stops)


def test_runs_that_stopped_leave_no_unknowns() -> None:
    assert unknowns([run("seed-1", 10, 20), run("seed-2", 30, 40)]) == []


def test_a_killed_run_leaves_an_unknown_from_its_last_event_to_the_next_start() -> None:
    found = unknowns([run("seed-1", 10, 20, stops=False), run("seed-2", 30, 40)])
    assert found == [("run.unclean", 20, 30)]


def test_the_latest_run_is_open_if_it_has_not_stopped() -> None:
    assert unknowns([run("seed-1", 10, 20, stops=False)]) == [("run.open", 20, None)]


def test_an_open_run_without_books_for_two_minutes_is_silent() -> None:
    last = run("seed-1", 10, 20, stops=False)
    now = 20 + 2 * MINUTE
    assert unknowns([last], now) == [("run.open", 20, None)]
    assert unknowns([last], now + 1) == [("run.silent", 20, now + 1)]
    assert unknowns([run("seed-1", 10, 20)], now + 1) == []


def test_an_idle_run_is_known_up_to_the_time_it_was_last_heard_of() -> None:
    last = run("seed-1", 10, 20, stops=False)
    heard_us, now = 60 * MINUTE, 62 * MINUTE
    assert unknowns([last], now, heard_us // 1000) == [("run.open", heard_us, None)]
    assert unknowns([last], now + 1, heard_us // 1000) == [("run.silent", heard_us, now + 1)]
    # An earlier run was killed all the same.
    again = run("seed-2", 30, 40, stops=False)
    assert unknowns([last, again], now, heard_us // 1000) == [
        ("run.unclean", 20, 30),
        ("run.open", heard_us, None),
    ]


def test_each_kill_of_a_node_is_an_unknown_in_whichever_order_its_stretches_come() -> None:
    epochs = [run(f"seed-{n}", 10 * n, 10 * n + 5, stops=n % 2 == 0) for n in range(1, 13)]
    others = [run("seed-1", 7, 9, node="n2"), run("seed-2", 11, 12, node="n2")]
    killed = [("run.unclean", 10 * n + 5, 10 * n + 10) for n in range(1, 12, 2)]
    assert unknowns([*reversed(epochs), *others]) == killed


def test_events_that_a_process_writes_for_its_killed_predecessor_do_not_shorten_the_unknown() -> (
    None
):
    later = run("seed-2", 30, 40)._replace(first_us=15)
    assert unknowns([run("seed-1", 10, 20, stops=False), later]) == [("run.unclean", 20, 30)]


def test_a_run_that_lost_its_store_for_a_while_continues_in_another_epoch() -> None:
    again = Stretch("n1", "seed-2", 25, 35, booked_us=35, is_stopped=True)
    assert unknowns([run("seed-1", 10, 20, stops=False), again]) == []
    emptied = again._replace(epoch="other-1")
    assert unknowns([run("seed-1", 10, 20, stops=False), emptied]) == []


def test_a_clock_that_was_put_back_yields_an_unknown_that_ends_before_it_begins() -> None:
    found = list(unknowns_of([run("seed-1", 100, 200, stops=False), run("seed-2", 50, 60)], {}, 0))
    assert [(unknown.since_us, unknown.until_us) for unknown in found] == [(200, 50)]


def test_the_part_of_a_run_without_books_is_an_unknown_unless_it_is_short() -> None:
    without = run("seed-1", 10, 10 + 3 * MINUTE)._replace(booked_us=None)
    assert unknowns([without]) == [("run.unbooked", 10, 10 + 3 * MINUTE)]
    late = run("seed-1", 10, 10 + 9 * MINUTE)
    late = late._replace(booked_us=10 + MINUTE, unbooked_us=10 + 2 * MINUTE)
    assert unknowns([late]) == [("run.unbooked", 10 + 2 * MINUTE, 10 + 9 * MINUTE)]
    young = run("seed-1", 10, 10 + MINUTE)._replace(booked_us=None)
    assert unknowns([young]) == []


def test_an_idle_time_between_the_last_books_and_the_next_event_is_known() -> None:
    idle = run("seed-1", 10, 10 + 9 * MINUTE)
    idle = idle._replace(booked_us=10 + MINUTE, unbooked_us=10 + 8 * MINUTE)
    assert unknowns([idle]) == []


def test_events_without_books_in_a_later_epoch_belong_to_the_part_of_the_run_without_books() -> (
    None
):
    first, later = run("seed-1", 10, 20), Stretch("n1", "seed-2", 30, 30 + 3 * MINUTE)
    later = later._replace(is_stopped=True)
    assert unknowns([first, later]) == [("run.unbooked", 30, 30 + 3 * MINUTE)]
    first = first._replace(unbooked_us=15)
    assert unknowns([first, later]) == [("run.unbooked", 15, 30 + 3 * MINUTE)]


def test_a_run_whose_start_is_missing_is_an_unknown_and_needs_books_too() -> None:
    assert unknowns([Stretch("n1", "seed-1", 10, 20, None, 20, is_stopped=True)]) == [
        ("run.cut", 10, 20)
    ]
    last = 10 + 3 * MINUTE
    assert unknowns([Stretch("n1", "seed-1", 10, last, is_stopped=True)]) == [
        ("run.cut", 10, last),
        ("run.unbooked", 10, last),
    ]
