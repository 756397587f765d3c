"""Publishers, receivers, their network, the store and restarts against a naive model."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.effort import TIMES
from tests.unit.bayeux.delivery_people import KINDS
from tests.unit.bayeux.delivery_rules import DeliveryRules
from tests.unit.bayeux.delivery_stage import Stage
from tests.unit.bayeux.delivery_store import Backing, SlowStore


class DeliveryMachine(DeliveryRules):
    """With a store in memory."""

    def open_store(self) -> Backing:
        return SlowStore()


@pytest.mark.slow
@pytest.mark.timeout(400 * TIMES)
def test_the_server_agrees_with_a_naive_model_of_delivery_over_random_operations() -> None:
    run_state_machine_as_test(
        DeliveryMachine,
        settings=settings(
            max_examples=30 * TIMES,
            stateful_step_count=50,
            report_multiple_bugs=False,
            phases=set(Phase) - {Phase.explain},
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_full_queue_has_no_room_until_the_reply_that_waits_for_the_store_has_left() -> None:
    [kind] = [kind for kind in KINDS if kind.label == "tom"]
    stage = Stage(SlowStore(), [kind])
    [tom] = stage.people

    def connect(fate: str) -> None:
        stage.connect(tom, said=[], pending=[], ack=None, is_patient=False, fate=fate)

    def publish(count: int) -> None:
        stage.send(0, "/b", count, {})
        stage.end_turn()

    stage.shake_hands(tom, None)
    connect("heard")
    publish(1)
    connect("cut")
    publish(kind.most - 1)
    stage.is_slow = True
    # One is redelivered, which the store must know before the client does.
    connect("heard")
    publish(1)
    stage.end_turn(is_quick=True)
    stage.look()
    assert stage.model.books["dead"] == 1


def test_a_queue_that_is_held_while_its_reply_waits_for_the_store_hands_nothing_over() -> None:
    stage = Stage(SlowStore(), [kind for kind in KINDS if kind.label == "ann"])
    [ann] = stage.people
    stage.send(0, "/a", 1, {})
    stage.end_turn()
    stage.connect(ann, ack=None)
    stage.restart()
    stage.is_slow = True
    # It is redelivered, which the store must know before the client does.
    stage.connect(ann, ack=None)
    [(_, asked, _)] = ann.questions
    assert asked.is_held
    [receiver] = stage.model.receivers
    stage.hold(receiver, None)
    stage.end_turn(is_quick=True)
    assert (asked.is_held, asked.data) == (False, [])
    stage.look()
    stage.is_slow = False
    stage.resume(receiver)
    stage.connect(ann, ack=None)
    [(_, asked, _)] = ann.questions
    assert asked.data == [1]
    stage.look()
