"""The trail of a message: the attempts to deliver it to one receiver."""

import orjson
import pytest

from holdfast.delivery.messages.trails import (
    MAX_TEXT,
    Attempt,
    Trail,
    clipped,
    extended,
    first_and_last,
)


def refused(n: int, text: str = "disk full") -> Attempt:
    time = 1_763_000_000_000 + n * 60_000
    code = "user.update.error"
    return Attempt(n, time, "holdfast", "long-polling", code, 250, code, text)


def history(*attempts: Attempt) -> Trail:
    trail: Trail = ()
    for attempt in attempts:
        trail = extended(trail, attempt)
    return trail


def test_a_trail_keeps_the_first_five_and_the_last_five_attempts() -> None:
    trail = history(*map(refused, range(1, 100)))
    assert [attempt.n for attempt in trail] == [1, 2, 3, 4, 5, 95, 96, 97, 98, 99]
    assert trail == first_and_last([*map(refused, range(1, 100))])


def test_a_long_text_of_an_attempt_is_cut() -> None:
    (kept,) = first_and_last([refused(1, "x" * 1000)])
    assert kept.text == "x" * MAX_TEXT


@pytest.mark.parametrize("text", ["", "x", "x" * 40, "\x01" * 40, "\U0001f600" * 40, '"' * 40])
def test_a_text_is_cut_by_its_length_in_json(text: str) -> None:
    cut = clipped(text, 40)
    assert text.startswith(cut)
    assert len(orjson.dumps(cut)) - 2 <= 40
    assert cut == text or len(orjson.dumps(cut)) - 2 > 40 - 6
    assert clipped(cut, 40) == cut


def test_a_lone_surrogate_in_a_text_is_replaced() -> None:
    assert clipped("a\ud800b", 40) == "a?b"
