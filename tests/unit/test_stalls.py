"""The bench of stalls judges only what it has measured often enough."""

from dataclasses import dataclass

import pytest

from bench.stalls.__main__ import Stall, send
from bench.stalls.cases import Attack

TIRELESS = 1_000_000


def stall(*, longest: float = 40.0, median: float = 15.0, answers: int) -> Stall:
    return Stall(longest, longest, median, median, answers, took=1.0, grew=0.0, kept=0.0)


@dataclass
class Sender:
    """Counts what it sends."""

    sent: int = 0

    def post(self, body: bytes) -> bytes:
        self.sent += 1
        return b""

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("answers", "is_fine"), [(1, True), (19, True), (20, False)])
def test_a_median_over_few_replies_is_not_judged(answers: int, is_fine: bool) -> None:
    met = stall(answers=answers)
    assert met.has_median is not is_fine
    assert met.is_fine is is_fine


def test_the_longest_wait_is_always_judged() -> None:
    assert not stall(longest=51.0, median=1.0, answers=1).is_fine
    assert stall(longest=49.0, median=1.0, answers=1).is_fine


@pytest.mark.parametrize(
    ("is_repeatable", "times", "enough", "sent"),
    [
        (False, 1, TIRELESS, 1),
        (False, 3, 0, 3),
        (True, 1, 0, 1),
        (True, 1, 7, 7),
        (True, 9, 7, 9),
        (True, 1, TIRELESS, 60),
        (True, 100, TIRELESS, 100),
    ],
)
def test_a_request_that_can_be_repeated_is_sent_until_there_are_enough_replies(
    is_repeatable: bool, times: int, enough: int, sent: int
) -> None:
    sender = Sender()
    attack = Attack(sender, b"", is_repeatable=is_repeatable)
    send(attack, times, lambda: sender.sent >= enough)
    assert sender.sent == sent
