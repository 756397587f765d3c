"""The token bucket in front of handshakes."""

from holdfast.bayeux.admission import Admission


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


def test_refused_handshakes_get_random_delays_within_the_spread() -> None:
    assert Admission(1, lambda: 0.0).delay_s() == 0.5
    assert Admission(1, lambda: 1.0).delay_s() == 0.5 + Admission.SPREAD_S
