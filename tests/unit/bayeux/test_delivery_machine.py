"""Publishers, receivers, their network, the store and its ends, against a naive model."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.bayeux.delivery_rules import DeliveryRules
from tests.unit.bayeux.delivery_store import Backing, SlowStore

# How much longer than usual this may take.
TIMES = int(os.environ.get("HOLDFAST_TEST_TIMES", "1"))


class DeliveryMachine(DeliveryRules):
    """With a store in memory."""

    def open_store(self) -> Backing:
        return SlowStore()


@pytest.mark.slow
@pytest.mark.timeout(60 * TIMES)
def test_everything_is_somewhere_whatever_happens() -> None:
    run_state_machine_as_test(
        DeliveryMachine,
        settings=settings(
            max_examples=200 * TIMES,
            stateful_step_count=50,
            report_multiple_bugs=False,
            phases=set(Phase) - {Phase.explain},
            suppress_health_check=list(HealthCheck),
        ),
    )
