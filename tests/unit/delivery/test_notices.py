"""What befalls sessions is told at once, and never more than somebody could read."""

import logging
from collections.abc import Callable

import pytest

from holdfast.delivery.notices import (
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
    """What was logged since this was last asked."""
    caplog.set_level(logging.INFO)

    def take() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return take


def test_what_happens_is_told_at_once(lines: Lines) -> None:
    notices = Notices()
    notices.report(REFUSED, "joe/1", ERROR)
    assert lines() == ["session joe/1 refused a message: user.update.error"]
    notices.report(DEAD_LETTER, "joe/1", ERROR, 3)
    assert lines() == ["a message for session joe/1 is a dead letter: user.update.error, 3 at once"]


def test_what_happens_again_is_counted_and_told_when_the_window_ends(lines: Lines) -> None:
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


def test_one_noisy_session_does_not_hide_another_nor_one_reason_another(lines: Lines) -> None:
    notices = Notices()
    for _ in range(1000):
        notices.report(REFUSED, "joe/1", ERROR)
    notices.report(REFUSED, "ann/1", ERROR)
    notices.report(REFUSED, "joe/1", "user.update.holdback")
    notices.report(HELD, "joe/1", "operator/ann")
    assert len(lines()) == 4


@pytest.mark.slow
def test_sessions_without_number_make_no_lines_without_number(lines: Lines) -> None:
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
