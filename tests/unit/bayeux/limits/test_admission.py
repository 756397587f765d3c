"""The token bucket in front of handshakes."""

import pytest

from holdfast.bayeux.limits.admission import Admission, AdmissionRefusal


def admitted(admission: Admission, now: float, tries: int) -> int:
    return sum(admission.admit(now) for _ in range(tries))


def test_a_full_bucket_admits_as_many_handshakes_at_once_as_its_rate() -> None:
    assert admitted(Admission(3, lambda: 0.0), 1000.0, 10) == 3


def test_the_bucket_refills_over_time_up_to_the_rate() -> None:
    admission = Admission(4, lambda: 0.0)
    assert admitted(admission, 1000.0, 10) == 4
    assert admitted(admission, 1000.5, 10) == 2
    assert admitted(admission, 1000.5, 10) == 0
    assert admitted(admission, 2000.0, 10) == 4


def test_no_handshake_is_admitted_while_the_server_is_lagging() -> None:
    admission = Admission(4, lambda: 0.0)
    admission.is_lagging = True
    assert admitted(admission, 1000.0, 10) == 0
    admission.is_lagging = False
    assert admitted(admission, 1000.0, 10) == 4


def test_clients_that_come_back_together_come_no_faster_than_they_are_admitted() -> None:
    assert Admission(4, lambda: 0.0).spread_s(10) == 0.0
    assert Admission(4, lambda: 1.0).spread_s(10) == 2.5


def test_refused_handshakes_get_random_delays_within_the_spread() -> None:
    assert Admission(1, lambda: 0.0).delay_s() == 0.5
    assert Admission(1, lambda: 1.0).delay_s() == 0.5 + Admission.SPREAD_S


def test_handshakes_refused_because_of_lag_are_logged_once_a_minute_and_all_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admission = Admission(4, lambda: 0.0)
    admission.is_lagging = True
    for tick in range(1200):
        admission.admit(tick / 10)
        admission.beat(tick / 10)
    admission.is_lagging = False
    admission.beat(120.0)
    said = [int(each.split()[-2]) for each in caplog.messages]
    assert said == [1, 600, 599], "each line has those since the line before"
    assert admission.refused == {AdmissionRefusal.RATE: 0, AdmissionRefusal.LAG: 1200}


def test_handshakes_beyond_the_rate_are_counted_but_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admission = Admission(3, lambda: 0.0)
    admitted(admission, 1000.0, 10)
    admission.beat(1000.0)
    assert admission.refused == {AdmissionRefusal.RATE: 7, AdmissionRefusal.LAG: 0}
    assert not caplog.messages
