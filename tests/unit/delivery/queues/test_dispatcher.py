"""When a queue may flow: contact, loss of it, refusals and the attempts after them."""

from pathlib import Path

import pytest

from holdfast.delivery.queues.dispatcher import (
    NEXT,
    Dispatcher,
    DispatcherInput,
    DispatcherState,
    Policy,
    QueueHold,
    step,
)
from tests.unit.delivery.dispatchers import alive, attempts

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "delivery.md"

# Columns: contact, attempt, loss, refusal, hold, give up, end.
TABLE = """
UNDEF    ALIVE  UNDEF  POLLING  POLLING  UNDEF    DEAD  DEAD
ALIVE    ALIVE  ALIVE  POLLING  POLLING  ALIVE    DEAD  DEAD
POLLING  ALIVE  ALIVE  POLLING  POLLING  POLLING  DEAD  DEAD
DEAD     DEAD   DEAD   DEAD     DEAD     DEAD     DEAD  DEAD
"""


@pytest.mark.parametrize("line", TABLE.split("\n")[1:-1])
def test_every_input_leads_where_the_table_says(line: str) -> None:
    state, *after = (DispatcherState[name] for name in line.split())
    assert [step(state, seen) for seen in DispatcherInput] == after


def test_the_documentation_shows_the_table() -> None:
    lines = ["stateDiagram-v2", "    [*] --> UNDEF"]
    lines += [f"    {old.name} --> {new.name}: {seen.value}" for (old, seen), new in NEXT.items()]
    picture = "\n".join(["```mermaid", *lines, "```", ""])
    assert picture in PAGE.read_text("utf-8"), f"{PAGE.name} should contain:\n{picture}"


def test_nothing_flows_before_the_first_connect() -> None:
    dispatcher = Dispatcher()
    states = [dispatcher.state]
    assert not dispatcher.flows(0.0)
    dispatcher.contact(0.0)
    states.append(dispatcher.state)
    assert dispatcher.flows(0.0)
    assert states == [DispatcherState.UNDEF, DispatcherState.ALIVE]


def test_the_default_policy_has_no_retries_and_a_response_timeout_of_a_minute() -> None:
    assert Dispatcher().policy == Policy(retries=0, delay_s=60.0)


def test_a_refusal_of_a_receiver_that_was_waited_for_begins_a_pause() -> None:
    dispatcher = alive(retries=1)
    dispatcher.lost(1.0)
    dispatcher.heard(1.2)
    dispatcher.refused(1.2, delay_s=3.0)
    dispatcher.contact(1.2)
    assert [dispatcher.flows(now) for now in (1.2, 4.1)] == [False, False]
    dispatcher.due(4.2)
    assert dispatcher.flows(4.2)


@pytest.mark.parametrize("was_seen", [False, True])
def test_a_pause_holds_for_a_receiver_that_is_back(was_seen: bool) -> None:
    dispatcher = Dispatcher(Policy(retries=1))
    if was_seen:
        dispatcher.contact(0.0)
        dispatcher.lost(1.0)
    dispatcher.heard(2.0)
    dispatcher.pause(2.0, 3.0)
    dispatcher.contact(2.0)
    assert [dispatcher.flows(now) for now in (2.0, 4.9, 5.0)] == [False, False, True]


def test_what_a_receiver_says_does_not_shorten_its_pause() -> None:
    dispatcher = alive(retries=1)
    dispatcher.refused(1.0, delay_s=3.0)
    dispatcher.heard(1.2)
    assert not dispatcher.flows(3.9)


# Since when


def test_a_dispatcher_remembers_since_when_it_has_its_state() -> None:
    dispatcher = Dispatcher(Policy(retries=-1, delay_s=1.0))
    since = [dispatcher.since]
    for now, happens in ((1.0, "contact"), (2.0, "contact"), (3.0, "lost"), (4.0, "due")):
        getattr(dispatcher, happens)(now)
        since.append(dispatcher.since)
    dispatcher.contact(5.0)
    dispatcher.refused(6.0)
    dispatcher.refused(6.2)
    since.append(dispatcher.since)
    dispatcher.due(6.5)
    since.append(dispatcher.since)
    assert since == [None, 1.0, 1.0, 3.0, 3.0, 6.0, 6.5]


def test_a_queue_hold_does_not_change_since_when_the_state_lasts() -> None:
    dispatcher = alive()
    dispatcher.hold_back(QueueHold("disk full", "joe/1", since=1_000))
    dispatcher.resume(7.0)
    assert dispatcher.since == 0.0


# Loss of contact


def test_a_receiver_without_retries_is_dead_when_contact_is_lost() -> None:
    dispatcher = alive(retries=0)
    assert dispatcher.gives_up()
    dispatcher.lost(10.0)
    assert dispatcher.is_dead


def test_a_receiver_that_never_connects_is_lost_like_any_other() -> None:
    dispatcher = Dispatcher(Policy(retries=1))
    dispatcher.lost(10.0)
    assert dispatcher.state is DispatcherState.POLLING
    assert attempts(dispatcher) == [10.4, None]


@pytest.mark.parametrize(
    ("retries", "dues"),
    [
        (1, [10.4, None]),
        (2, [10.4, 11.4, None]),
        (3, [10.4, 11.4, 12.4, None]),
        (-1, [10.4, 11.4, 12.4, 13.4, 14.4, 15.4]),
    ],
)
def test_the_first_attempt_comes_soon_and_later_ones_after_the_delay(
    retries: int, dues: list[float | None]
) -> None:
    dispatcher = alive(retries)
    dispatcher.lost(10.0)
    assert attempts(dispatcher) == dues


@pytest.mark.parametrize("retries", [-1, 1, 5])
def test_a_delay_of_zero_switches_retries_off(retries: int) -> None:
    lost, refused = alive(retries, delay_s=0.0), alive(retries, delay_s=0.0)
    lost.lost(10.0)
    refused.refused(10.0, 5.0)
    assert lost.is_dead
    assert refused.is_dead


def test_nothing_flows_while_contact_is_lost() -> None:
    dispatcher = alive(retries=-1)
    dispatcher.lost(10.0)
    dispatcher.due(10.4)
    assert not dispatcher.flows(10.4)


def test_a_connect_is_a_successful_attempt() -> None:
    dispatcher = alive(retries=1)
    dispatcher.lost(10.0)
    dispatcher.contact(10.1)
    assert dispatcher.state is DispatcherState.ALIVE
    assert dispatcher.flows(10.1)
    assert (dispatcher.attempt, dispatcher.deadline) == (0, None)


def test_a_connect_is_in_time_until_the_due_attempt_is_processed() -> None:
    dispatcher = alive(retries=1)
    dispatcher.lost(10.0)
    dispatcher.contact(10.5)
    dispatcher.due(10.5)
    assert dispatcher.state is DispatcherState.ALIVE


def test_a_receiver_that_returns_each_time_is_never_given_up() -> None:
    dispatcher = alive(retries=1)
    for now in range(10, 100, 10):
        dispatcher.lost(now)
        dispatcher.contact(now + 0.3)
    assert dispatcher.flows(100.0)


def test_a_second_loss_of_contact_changes_nothing() -> None:
    dispatcher = alive(retries=1)
    dispatcher.lost(10.0)
    dispatcher.lost(10.3)
    assert not dispatcher.gives_up()
    assert attempts(dispatcher) == [10.4, None]


def test_a_check_before_the_deadline_changes_nothing() -> None:
    dispatcher = alive(retries=1)
    dispatcher.due(5.0)
    dispatcher.lost(10.0)
    dispatcher.due(10.3)
    assert dispatcher.state is DispatcherState.POLLING
    assert dispatcher.deadline == 10.4


# Refusal


def test_a_receiver_without_retries_is_dead_after_a_refusal() -> None:
    dispatcher = alive(retries=0)
    dispatcher.refused(10.0)
    assert dispatcher.is_dead


def test_a_connect_after_a_refusal_waits_for_the_attempt() -> None:
    dispatcher = alive(retries=1)
    dispatcher.refused(10.0)
    dispatcher.contact(10.3)
    states = [dispatcher.state]
    assert not dispatcher.flows(10.3)
    dispatcher.due(10.4)
    states.append(dispatcher.state)
    assert dispatcher.flows(10.4)
    assert states == [DispatcherState.POLLING, DispatcherState.ALIVE]


def test_a_connect_after_the_attempt_fell_due_is_the_attempt() -> None:
    dispatcher = alive(retries=1)
    dispatcher.refused(10.0)
    dispatcher.contact(10.4)
    assert dispatcher.flows(10.4)


def test_connects_after_refusals_do_not_reset_the_attempt_counter() -> None:
    dispatcher = alive(retries=2)
    for now in (10.0, 11.0):
        assert not dispatcher.gives_up()
        dispatcher.refused(now)
        dispatcher.contact(now + 1.0)
        assert dispatcher.flows(now + 1.0)
    assert dispatcher.gives_up()
    dispatcher.refused(20.0)
    assert dispatcher.is_dead


def test_an_acked_entry_resets_the_attempt_counter() -> None:
    dispatcher = alive(retries=1)
    for now in (10.0, 20.0, 30.0):
        dispatcher.refused(now)
        dispatcher.due(now + 0.4)
        assert dispatcher.gives_up()
        dispatcher.acked()
        assert dispatcher.attempt == 0
        assert not dispatcher.gives_up()
    dispatcher.lost(40.0)
    dispatcher.contact(40.1)
    assert dispatcher.attempt == 0


def test_an_ack_makes_the_awaited_attempt_the_first_one() -> None:
    dispatcher = alive(retries=2)
    dispatcher.refused(10.0)
    dispatcher.due(10.4)
    dispatcher.refused(10.5)
    dispatcher.acked()
    assert dispatcher.attempt == 1
    assert not dispatcher.flows(10.5)
    dispatcher.due(11.5)
    dispatcher.refused(11.5)
    assert dispatcher.state is DispatcherState.POLLING


def test_refusals_at_the_same_time_are_one_failure() -> None:
    dispatcher = alive(retries=1)
    dispatcher.refused(10.0)
    dispatcher.refused(10.0)
    assert (dispatcher.state, dispatcher.attempt, dispatcher.deadline) == (
        DispatcherState.POLLING,
        1,
        10.4,
    )


def test_the_delay_of_a_refusal_counts_for_one_attempt() -> None:
    dispatcher = alive(retries=-1)
    dispatcher.refused(10.0, 30.0)
    assert dispatcher.deadline == 40.0
    dispatcher.due(40.0)
    dispatcher.refused(40.0)
    assert dispatcher.deadline == 41.0
    dispatcher.due(41.0)
    dispatcher.refused(41.0, 0.0)
    assert dispatcher.deadline == 41.1


def test_a_delay_of_zero_is_a_pause_that_doubles_up_to_the_agreed_delay() -> None:
    dispatcher, now, pauses = alive(retries=-1, delay_s=3.0), 10.0, []
    for hand_overs in range(1, 9):
        dispatcher.refused(now, 0.0, hand_overs)
        assert dispatcher.deadline is not None
        pauses.append(round(dispatcher.deadline - now, 3))
        now = dispatcher.deadline
        dispatcher.due(now)
        # Other messages may be acked meanwhile.
        dispatcher.acked()
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0, 3.0]


def test_the_pause_grows_up_to_a_second_if_the_agreed_delay_is_shorter() -> None:
    dispatcher = alive(retries=-1, delay_s=0.001)
    dispatcher.refused(10.0, None, 30)
    assert dispatcher.deadline == 11.0


def test_the_message_handed_over_most_often_decides_the_pause_after_several_refusals() -> None:
    dispatcher = alive(retries=-1, delay_s=10.0)
    dispatcher.refused(10.0, 0.0, 1)
    dispatcher.refused(10.0, 0.0, 6)
    assert dispatcher.deadline == 13.2


def test_the_longest_delay_of_several_refusals_counts() -> None:
    dispatcher = alive(retries=1)
    dispatcher.refused(10.0, 3.0)
    dispatcher.refused(10.0, 5.0)
    dispatcher.refused(10.0, 4.0)
    dispatcher.refused(10.0)
    assert dispatcher.deadline == 15.0


def test_a_receiver_lost_before_its_attempt_must_return_before_it_falls_due() -> None:
    dispatcher = alive(retries=1)
    dispatcher.refused(10.0, 30.0)
    dispatcher.lost(20.0)
    assert attempts(dispatcher) == [40.0, None]


def test_a_receiver_that_returns_before_its_attempt_still_waits_for_it() -> None:
    dispatcher = alive(retries=1)
    dispatcher.refused(10.0, 30.0)
    dispatcher.lost(20.0)
    dispatcher.contact(30.0)
    assert not dispatcher.flows(30.0)
    dispatcher.due(40.0)
    assert dispatcher.flows(40.0)


def test_a_receiver_that_returns_after_a_missed_attempt_flows_and_keeps_its_count() -> None:
    dispatcher = alive(retries=2)
    dispatcher.refused(10.0, 30.0)
    dispatcher.lost(20.0)
    dispatcher.due(40.0)
    dispatcher.contact(40.5)
    assert dispatcher.flows(40.5)
    assert dispatcher.gives_up()


def test_an_attempt_fails_if_contact_is_lost_during_it() -> None:
    dispatcher = alive(retries=2)
    dispatcher.refused(10.0)
    dispatcher.due(10.4)
    dispatcher.lost(30.0)
    assert dispatcher.attempt == 2
    assert attempts(dispatcher) == [31.0, None]


def test_a_refusal_without_contact_changes_neither_the_counter_nor_the_deadline() -> None:
    dispatcher = alive(retries=2)
    dispatcher.lost(10.0)
    dispatcher.refused(10.1, 60.0)
    assert (dispatcher.attempt, dispatcher.deadline) == (1, 10.4)
    dispatcher.contact(10.2)
    assert dispatcher.flows(10.2)
    assert dispatcher.attempt == 1
