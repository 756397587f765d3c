"""When the logins of sessions are checked, and that ended sessions are forgotten."""

from itertools import count
from typing import cast

from holdfast.bayeux.session import Session
from holdfast.login.check_times import CheckTimes

TOMORROW = 86_400.0


class Visitor:
    """What the schedule knows of a session."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_gone = False


def visitor(number: int) -> Session:
    return cast("Session", Visitor(number))


def leave(session: Session) -> None:
    cast("Visitor", session).is_gone = True


def test_sessions_that_ended_are_forgotten_long_before_their_logins_end() -> None:
    checks = CheckTimes()
    stayed = visitor(0)
    checks.watch(stayed, TOMORROW)
    for number in range(1, 1000):
        passing = visitor(number)
        checks.watch(passing, TOMORROW)
        leave(passing)

    assert len(checks) < 100
    assert len(checks._watched) < 100
    assert list(checks.due(TOMORROW)) == [stayed]


def test_many_renewals_of_one_session_take_little_room_and_the_last_one_counts() -> None:
    checks, session = CheckTimes(), visitor(1)
    for at_s in range(1, 1000):
        checks.watch(session, float(at_s))

    assert len(checks) < 100
    assert not list(checks.due(998.0))
    assert list(checks.due(999.0)) == [session]


def test_sessions_are_checked_in_the_order_of_their_times() -> None:
    checks, numbers = CheckTimes(), count()
    sessions = [visitor(next(numbers)) for _ in range(500)]
    for session in reversed(sessions):
        checks.watch(session, float(session.number))

    assert list(checks.due(500.0)) == sessions
    assert not len(checks)
