"""The order in which the steps of a message are shown."""

import pytest

from holdfast.cli.output import Json
from holdfast.cli.step_order import in_order


def step(
    at_us: int,
    kind: str,
    attempt: int | None = None,
    receiver: str | None = "joe/1",
    node: str = "holdfast",
) -> Json:
    return {
        **{"at_us": at_us, "kind": kind, "attempt": attempt},
        **{"receiver": receiver, "node": node},
    }


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (
            [step(0, "published", None, None), step(958, "refused", 1), step(1000, "handed", 1)],
            "published handed refused",
        ),
        ([step(958, "acked"), step(1000, "handed", 1)], "handed acked"),
        (
            [step(5, "returned"), step(5, "refused", 1), step(1, "handed", 1)],
            "handed refused returned",
        ),
        (
            [
                step(10, "handed", 1),
                step(20, "refused", 1),
                step(58, "refused", 2),
                step(60, "redelivered", 2),
                step(59, "dead", 2),
            ],
            "handed refused redelivered refused dead",
        ),
        (
            [
                step(5, "handed", 1),
                step(9, "refused", 1),
                step(10, "dead", 1),
                step(20, "replayed"),
                step(29, "refused", 1),
                step(30, "handed", 1),
                step(29, "dead", 1),
            ],
            "handed refused dead replayed handed refused dead",
        ),
        ([step(0, "refused", 1), step(2_000_000, "handed", 1)], "refused handed"),
        (
            [step(0, "published", None, None), step(0, "published", None, None)],
            "published published",
        ),
    ],
)
def test_effects_follow_their_causes_whoever_read_the_clock_first(
    steps: list[Json], expected: str
) -> None:
    assert " ".join(each["kind"] for each in in_order(steps)) == expected


def test_a_step_that_came_before_its_cause_gets_its_time() -> None:
    steps = [step(958, "refused", 1), step(1000, "handed", 1)]
    assert [each["at_us"] for each in in_order(steps)] == [1000, 1000]
    assert [each["at_us"] for each in steps] == [958, 1000]


def test_the_order_of_other_copies_is_that_of_their_times() -> None:
    steps = [
        step(3, "acked"),
        step(1, "handed", 1, "ann/1"),
        step(2, "handed", 1),
        step(2, "acked", None, "ann/1"),
    ]
    assert in_order(steps) == [steps[1], steps[2], steps[3], steps[0]]


HOUR_US = 3_600_000_000


def at_second(at_us: int, kind: str, receiver: str = "ann/1") -> Json:
    return step(at_us, kind, 1, receiver, "holdfast/1")


def test_steps_of_a_worker_whose_clock_is_behind_follow_the_publish_at_another() -> None:
    steps = [
        step(HOUR_US, "published", None, None),
        step(HOUR_US + 5, "handed", 1),
        step(HOUR_US + 9, "acked"),
        at_second(10, "handed"),
        at_second(40, "acked"),
    ]
    found = in_order(steps)
    assert [(each["kind"], each["receiver"]) for each in found] == [
        ("published", None),
        ("handed", "ann/1"),
        ("handed", "joe/1"),
        ("acked", "joe/1"),
        ("acked", "ann/1"),
    ]
    # The time between two steps of one worker stays.
    assert [each["at_us"] - HOUR_US for each in found] == [0, 0, 5, 9, 30]


def test_a_copy_enters_a_queue_of_another_worker_after_it_has_left_the_former() -> None:
    steps = [
        step(1, "published", None, None),
        step(HOUR_US, "moved", None, "joe/0"),
        at_second(2, "entered"),
        at_second(7, "handed"),
    ]
    assert [each["kind"] for each in in_order(steps)] == ["published", "moved", "entered", "handed"]
    assert [each["at_us"] for each in in_order(steps)[2:]] == [HOUR_US + 1, HOUR_US + 6]
