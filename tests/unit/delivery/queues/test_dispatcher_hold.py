"""Queues that are paused or held back, and the end."""

import pytest

from holdfast.delivery.queues.dispatcher import Dispatcher, DispatcherState, QueueHold
from tests.unit.delivery.dispatchers import alive, attempts

HELD = QueueHold("disk full", "joe/1", since=1_000)


# Pauses


def test_a_pause_stops_the_flow_and_counts_as_no_attempt() -> None:
    dispatcher = alive()
    dispatcher.pause(10.0, 5.0)
    dispatcher.pause(10.0, 2.0)
    dispatcher.contact(11.0)
    assert (dispatcher.state, dispatcher.attempt) == (DispatcherState.ALIVE, 0)
    assert not dispatcher.flows(14.9)
    assert dispatcher.flows(15.0)
    dispatcher.due(15.0)
    assert (dispatcher.state, dispatcher.deadline) == (DispatcherState.ALIVE, None)


def test_a_pause_changes_nothing_after_contact_is_lost() -> None:
    dispatcher = alive(retries=1)
    dispatcher.lost(10.0)
    dispatcher.pause(10.0, 60.0)
    assert dispatcher.deadline == 10.4


# Holding back


def test_a_queue_that_is_held_back_does_not_flow_and_its_receiver_stays_alive() -> None:
    dispatcher = alive()
    assert dispatcher.is_active
    dispatcher.hold_back(HELD)
    assert dispatcher.hold_record is HELD
    assert not dispatcher.is_active
    assert dispatcher.state is DispatcherState.ALIVE
    assert not dispatcher.flows(10.0)
    dispatcher.resume(10.0)
    assert dispatcher.is_active
    assert dispatcher.flows(10.0)


def test_a_dispatcher_may_begin_held_back() -> None:
    dispatcher = Dispatcher()
    dispatcher.hold_back(HELD)
    dispatcher.contact(0.0)
    assert not dispatcher.flows(0.0)


@pytest.mark.parametrize("retries", [0, 1, -1])
def test_a_queue_that_is_held_back_is_never_given_up(retries: int) -> None:
    dispatcher = alive(retries)
    dispatcher.hold_back(HELD)
    dispatcher.refused(10.0)
    dispatcher.lost(20.0)
    assert not dispatcher.gives_up()
    assert (dispatcher.state, dispatcher.deadline) == (DispatcherState.POLLING, None)
    dispatcher.contact(5_000.0)
    assert dispatcher.state is DispatcherState.ALIVE
    dispatcher.resume(5_001.0)
    assert dispatcher.flows(5_001.0)


def test_no_attempts_fall_due_while_a_queue_is_held_back() -> None:
    dispatcher = alive(retries=2)
    dispatcher.lost(10.0)
    dispatcher.due(10.4)
    dispatcher.hold_back(HELD)
    assert attempts(dispatcher) == []
    dispatcher.resume(500.0)
    assert dispatcher.attempt == 2
    assert attempts(dispatcher) == [501.0, None]


@pytest.mark.parametrize(("retries", "dues"), [(0, [500.4, None]), (1, [500.4, 500.8, None])])
def test_a_receiver_lost_during_a_hold_has_time_to_return_after_it(
    retries: int, dues: list[float | None]
) -> None:
    dispatcher = alive(retries)
    dispatcher.hold_back(HELD)
    dispatcher.lost(20.0)
    dispatcher.resume(500.0)
    assert attempts(dispatcher) == dues


def test_a_queue_held_back_before_its_attempt_flows_only_when_it_is_resumed() -> None:
    dispatcher = alive(retries=1)
    dispatcher.refused(10.0)
    dispatcher.hold_back(HELD)
    dispatcher.due(10.4)
    assert dispatcher.state is DispatcherState.ALIVE
    assert not dispatcher.flows(10.4)
    dispatcher.resume(20.0)
    assert dispatcher.flows(20.0)


def test_a_hold_ends_the_wait_for_the_attempt_of_a_receiver_that_refused_and_was_lost() -> None:
    dispatcher = alive(retries=1)
    dispatcher.refused(10.0, 30.0)
    dispatcher.lost(20.0)
    dispatcher.hold_back(HELD)
    dispatcher.contact(25.0)
    dispatcher.resume(26.0)
    assert dispatcher.flows(26.0)
    assert dispatcher.attempt == 1


def test_resuming_a_queue_that_is_not_held_back_changes_nothing() -> None:
    dispatcher = alive(retries=1)
    dispatcher.lost(10.0)
    dispatcher.resume(10.2)
    assert (dispatcher.attempt, dispatcher.deadline) == (1, 10.4)


# The end


def test_a_dead_dispatcher_stays_dead_whatever_happens() -> None:
    dispatcher = alive(retries=-1)
    dispatcher.end()
    dispatcher.contact(1.0)
    dispatcher.lost(2.0)
    dispatcher.contact(3.0)
    dispatcher.refused(4.0)
    dispatcher.pause(5.0, 1.0)
    dispatcher.acked()
    dispatcher.hold_back(HELD)
    dispatcher.lost(6.0)
    dispatcher.resume(7.0)
    dispatcher.due(100.0)
    assert dispatcher.is_dead
    assert dispatcher.gives_up()
    assert dispatcher.deadline is None
    assert not dispatcher.flows(100.0)
