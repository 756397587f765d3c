"""The order in which the steps of a message are shown."""

import pytest

from holdfast.cli.output import Json
from holdfast.cli.step_order import in_order


def step(at_us: int, kind: str, attempt: int | None = None, receiver: str | None = "joe/1") -> Json:
    return {"at_us": at_us, "kind": kind, "attempt": attempt, "receiver": receiver}


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
