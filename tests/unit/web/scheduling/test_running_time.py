"""The clock of the server stands still while the process does not run."""

from holdfast.web.scheduling.running_time import RunningTime


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_clock_runs_while_it_is_read() -> None:
    hand = Hand()
    clock = RunningTime(hand)
    for beats in range(1, 50):
        hand.now = 100.0 + beats / 10
        assert clock() == hand.now


def test_a_gap_between_readings_does_not_count() -> None:
    hand = Hand()
    clock = RunningTime(hand)
    hand.now = 100.1
    before = clock()
    hand.now = 3700.1
    assert round(clock() - before, 6) == 0.0
    hand.now = 3700.2
    assert round(clock() - before, 6) == 0.1


def test_the_clock_never_goes_back() -> None:
    hand = Hand()
    clock = RunningTime(hand)
    seen = []
    for step in (0.1, 0.4, 0.6, 30.0, 0.0, 0.1, 2.0, 0.49):
        hand.now += step
        seen.append(clock())
    assert seen == sorted(seen)


def test_a_stopped_clock_goes_on_where_it_stopped() -> None:
    hand = Hand()
    clock = RunningTime(hand)
    hand.now += 0.2
    clock.stop()
    seen = []
    for step in (0.1, 0.3, 20.0, 0.1):
        hand.now += step
        seen.append(clock())
    clock.go_on()
    hand.now += 0.4
    assert seen == [100.2] * 4
    assert round(clock(), 6) == 100.6


def test_a_clock_that_was_not_stopped_goes_on_as_before() -> None:
    hand = Hand()
    clock = RunningTime(hand)
    hand.now += 0.2
    clock.go_on()
    hand.now += 0.2
    assert round(clock(), 6) == 100.4


def test_a_clock_that_skips_a_time_goes_on_from_there() -> None:
    hand = Hand()
    clock = RunningTime(hand)
    clock.skip(3600.0)
    assert clock() == 3700.0
    hand.now += 0.2
    assert round(clock(), 6) == 3700.2


def test_a_stopped_clock_that_skips_a_time_stands_still_there() -> None:
    hand = Hand()
    clock = RunningTime(hand)
    clock.stop()
    clock.skip(3600.0)
    hand.now += 0.2
    assert clock() == 3700.0
    clock.go_on()
    hand.now += 0.2
    assert round(clock(), 6) == 3700.2
