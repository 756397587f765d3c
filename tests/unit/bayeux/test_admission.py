"""The token bucket in front of handshakes."""

from holdfast.bayeux.admission import Admission


def admitted(admission: Admission, now: float, tries: int) -> int:
    return sum(admission.admit(now) for _ in range(tries))


def test_as_many_as_the_rate_says_are_let_in_at_once() -> None:
    assert admitted(Admission(3, lambda: 0.0), 1000.0, 10) == 3


def test_the_bucket_fills_with_time_and_not_beyond_the_rate() -> None:
    admission = Admission(4, lambda: 0.0)
    assert admitted(admission, 1000.0, 10) == 4
    assert admitted(admission, 1000.5, 10) == 2
    assert admitted(admission, 1000.5, 10) == 0
    assert admitted(admission, 2000.0, 10) == 4


def test_nobody_is_let_in_while_the_server_is_behind_with_its_work() -> None:
    admission = Admission(4, lambda: 0.0)
    admission.is_congested = True
    assert admitted(admission, 1000.0, 10) == 0
    admission.is_congested = False
    assert admitted(admission, 1000.0, 10) == 4


def test_those_turned_away_come_back_spread_over_some_seconds() -> None:
    assert Admission(1, lambda: 0.0).delay_s() == 0.5
    assert Admission(1, lambda: 1.0).delay_s() == 0.5 + Admission.SPREAD_S
