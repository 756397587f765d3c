"""A turn has a budget of processor time, which all its askers share."""

import pytest

from holdfast.web.scheduling import turn_budget
from holdfast.web.scheduling.turn_budget import TurnBudget


class Clocks:
    """The time of day, and the processor time of this thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.worked = 1.0
        self.asked = 0
        monkeypatch.setattr(turn_budget, "monotonic", lambda: self.now)
        monkeypatch.setattr(turn_budget, "thread_time", self._processor_time)

    def _processor_time(self) -> float:
        self.asked += 1
        return self.worked

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds

    def wait(self, seconds: float) -> None:
        """Let another program have the processor."""
        self.now += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def budget() -> TurnBudget:
    return TurnBudget(lambda: None, lambda: None)


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_a_turn_is_over_after_five_milliseconds_of_work(clocks: Clocks, steps: int) -> None:
    turn = budget()
    assert not turn.is_over()
    for _ in range(steps):
        assert not turn.is_over()
        clocks.work(0.0051 / steps)
    assert turn.is_over()


def test_the_time_of_other_programs_does_not_count(clocks: Clocks) -> None:
    turn = budget()
    turn.is_over()
    clocks.work(0.001)
    assert not turn.is_over()
    clocks.wait(0.1)
    assert not turn.is_over()
    clocks.work(0.0041)
    assert turn.is_over()


def test_a_long_first_step_ends_the_turn(clocks: Clocks) -> None:
    turn = budget()
    turn.is_over()
    clocks.work(0.03)
    assert turn.is_over()
    assert turn.is_over()


def test_the_next_turn_begins_anew(clocks: Clocks) -> None:
    ends: list[str] = []
    turn = TurnBudget(lambda: ends.append("asked for"), lambda: None)
    for number in range(2):
        assert not turn.is_over()
        clocks.work(0.006)
        assert turn.is_over()
        assert len(ends) == number + 1
        turn.begin_anew()


def test_a_short_turn_causes_no_question_for_processor_time(clocks: Clocks) -> None:
    turn = budget()
    for _ in range(10):
        turn.is_over()
        clocks.work(0.00006)
    assert clocks.asked == 0
    clocks.work(0.001)
    for _ in range(10):
        turn.is_over()
    assert clocks.asked == 1


def test_a_turn_can_have_a_part_of_the_budget_until_the_next_begins(clocks: Clocks) -> None:
    turn = budget()
    for turn_s in (0.003, 0.005):
        turn.begin_anew(turn_s)
        turn.is_over()
        clocks.work(0.004)
        assert turn.is_over() is (turn_s == 0.003)
    turn.begin_anew(0.003)
    turn.begin_anew()
    turn.is_over()
    clocks.work(0.004)
    assert not turn.is_over()


def test_everybody_stops_after_a_step_in_a_hurry(clocks: Clocks) -> None:
    turn = budget()
    turn.is_hurried = True
    assert turn.is_over()
    assert not turn.is_spent()


def handle(turn: TurnBudget, clocks: Clocks, count: int, each_s: float) -> list[bool]:
    """Handle small requests that take this long; return for each whether it was late."""
    late: list[bool] = []
    for _ in range(count):
        late.append(turn.is_late())
        clocks.work(each_s)
    return late


def test_after_20_milliseconds_small_requests_wait_and_replies_leave(clocks: Clocks) -> None:
    turn = budget()
    assert not any(handle(turn, clocks, 390, 0.00005))
    assert turn.is_over()
    assert not turn.is_late()
    assert not turn.is_overdue()
    clocks.work(0.001)
    assert not turn.is_behind
    assert turn.is_late()
    assert turn.is_behind
    assert turn.is_overdue()
    turn.begin_anew()
    assert not turn.is_behind
    assert not turn.is_late()
    assert not turn.is_overdue()


@pytest.mark.parametrize(("connections", "handled"), [(2000, 391), (3000, 231), (9000, 91)])
def test_the_more_connections_may_send_something_the_earlier_small_requests_wait(
    clocks: Clocks, connections: int, handled: int
) -> None:
    turn = budget()
    turn.connections = connections
    turn.begin_anew()
    late = handle(turn, clocks, 500, 0.00005)
    assert abs(late.index(True) - handled) <= 10


def test_small_requests_that_take_long_wait_as_soon_as_the_budget_is_spent(clocks: Clocks) -> None:
    turn = budget()
    for _ in range(2):
        late = handle(turn, clocks, 50, 0.0005)
        assert late.index(True) == 11
        assert all(late[11:])
        turn.begin_anew()


def test_one_long_request_among_short_ones_makes_none_of_them_wait(clocks: Clocks) -> None:
    turn = budget()
    handle(turn, clocks, 1, 0.006)
    assert not any(handle(turn, clocks, 270, 0.00005))


def test_the_time_of_other_programs_makes_no_request_dear(clocks: Clocks) -> None:
    turn = budget()
    for _ in range(8):
        assert not any(handle(turn, clocks, 10, 0.00005))
        clocks.wait(0.002)
    assert not turn.is_late()


def test_replies_of_a_long_turn_leave_after_ten_milliseconds_and_again(clocks: Clocks) -> None:
    sent_at: list[float] = []
    turn = TurnBudget(lambda: None, lambda: sent_at.append(clocks.now))
    for _ in range(2):
        began_at = clocks.now
        assert not any(handle(turn, clocks, 390, 0.00005))
        assert [round(1000 * (each - began_at)) for each in sent_at] == [10, 15]
        sent_at.clear()
        turn.begin_anew()


def test_after_a_long_step_replies_leave_and_small_requests_wait_at_once(clocks: Clocks) -> None:
    sent: list[str] = []
    turn = TurnBudget(lambda: None, lambda: sent.append("sent"))
    assert not turn.is_late()
    clocks.work(0.001)
    assert not turn.is_late()
    clocks.work(0.03)
    assert turn.is_late()
    assert sent == ["sent"]


def test_a_turn_that_is_not_late_causes_one_question_for_processor_time(clocks: Clocks) -> None:
    turn = budget()
    assert not any(handle(turn, clocks, 390, 0.00005))
    assert clocks.asked == 1


def test_what_is_read_after_an_early_end_of_the_turn_waits(clocks: Clocks) -> None:
    turn = budget()
    turn.begin_late()
    assert not turn.is_late()
    clocks.work(0.00001)
    assert turn.is_late()
    assert not turn.is_overdue()
    clocks.work(0.0051)
    assert turn.is_overdue()


def test_a_turn_takes_from_its_first_call_to_its_end(clocks: Clocks) -> None:
    turn = budget()
    turn.is_spent()
    clocks.work(0.006)
    # The budgets of its parts do not matter.
    turn.begin_anew()
    turn.is_spent()
    clocks.wait(0.03)
    turn.end()
    clocks.work(5.0)
    turn.is_spent()
    clocks.work(0.001)
    turn.end()
    assert turn.times.read()[-1] == 2
    assert turn.times.total_ns == pytest.approx(37_000_000)


def test_turns_without_work_and_turns_that_had_to_wait_are_not_counted(clocks: Clocks) -> None:
    turn = budget()
    turn.end()
    turn.is_spent()
    turn.forget()
    clocks.wait(60.0)
    turn.end()
    assert turn.times.read()[-1] == 0
