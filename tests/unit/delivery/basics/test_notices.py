"""Log lines about sessions: written at once, and never more than an operator can read."""

import logging
from collections.abc import Callable

import pytest

from holdfast.delivery.basics.notices import (
    DEAD_LETTER,
    HELD,
    MOST,
    NOTICE_KINDS,
    REFUSED,
    WINDOW_S,
    Notices,
)

ERROR = "user.update.error"
Lines = Callable[[], list[str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """A function that takes what was logged since its last call."""
    caplog.set_level(logging.INFO)

    def take() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return take


def test_a_notice_is_logged_at_once(lines: Lines) -> None:
    notices = Notices()
    notices.report(REFUSED, "joe/1", ERROR)
    assert lines() == ["session joe/1 refused a message: user.update.error"]
    notices.report(DEAD_LETTER, "joe/1", ERROR, 3)
    assert lines() == ["a message for session joe/1 is a dead letter: user.update.error, 3 at once"]


def test_repeated_notices_are_logged_as_a_count_when_the_window_ends(lines: Lines) -> None:
    notices = Notices()
    notices.beat(100.0)
    for _ in range(1000):
        notices.report(REFUSED, "joe/1", ERROR)
    notices.beat(100.0 + WINDOW_S - 0.1)
    assert len(lines()) == 1
    notices.beat(100.0 + WINDOW_S)
    assert lines() == ["session joe/1 refused a message: user.update.error, 999 more"]
    notices.beat(100.0 + 2 * WINDOW_S)
    assert lines() == []
    notices.report(REFUSED, "joe/1", ERROR)
    assert len(lines()) == 1


def test_a_noisy_session_hides_no_notice_of_another_session_code_or_kind(lines: Lines) -> None:
    notices = Notices()
    for _ in range(1000):
        notices.report(REFUSED, "joe/1", ERROR)
    notices.report(REFUSED, "ann/1", ERROR)
    notices.report(REFUSED, "joe/1", "user.update.holdback")
    notices.report(HELD, "joe/1", "operator/ann")
    assert len(lines()) == 4


@pytest.mark.slow
def test_notices_about_very_many_sessions_make_a_limited_number_of_log_lines(lines: Lines) -> None:
    notices = Notices()
    for number in range(100_000):
        for kind in NOTICE_KINDS:
            notices.report(kind, f"joe/{number}", ERROR)
    assert len(lines()) == MOST * len(NOTICE_KINDS)
    notices.end_window()
    told = lines()
    assert len(told) == len(NOTICE_KINDS)
    others = 100_000 - MOST
    assert f"session (others) refused a message: various, {others} more" in told
