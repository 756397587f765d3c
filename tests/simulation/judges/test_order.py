"""When a message that is not stored may come before an earlier one that is."""

import pytest

from tests.simulation import faults
from tests.simulation.faults import Fault
from tests.simulation.judges.order import Order
from tests.simulation.oracle import Publish
from tests.simulation.schedule import Occurrence, Schedule

STORED = Publish("ann", 1, "/a", 12.1, id="1", accepted_at=12.1)
PASSING = Publish("ann", 2, "/a", 12.2, is_durable=False, id="2", accepted_at=12.2)


def order_with(fault: Fault, at_s: float) -> Order:
    order = Order()
    order.know(Schedule([Occurrence(at_s, fault, 2.0)], 30.0, is_sudden=False))
    return order


@pytest.mark.parametrize("fault", [faults.lose_connection, faults.lose_direction])
def test_it_may_while_the_connection_to_a_store_is_silent(fault: Fault) -> None:
    assert order_with(fault, 11.9).may_overtake(STORED, PASSING)
    assert not order_with(fault, 11.9).may_overtake(PASSING, STORED)
    assert not order_with(fault, 20.0).may_overtake(STORED, PASSING)


def test_it_may_not_for_a_fault_that_leaves_stores_alone() -> None:
    assert not order_with(faults.set_clock, 11.9).may_overtake(STORED, PASSING)


def test_it_may_for_longer_if_a_server_does_not_run_meanwhile() -> None:
    lost = Occurrence(3.0, faults.lose_direction, 2.0)
    later = Publish("ann", 2, "/a", 12.2, is_durable=False, id="2", accepted_at=12.2)
    for stops, may in (([], False), ([Occurrence(9.0, faults.suspend_server_in_raise, 6.0)], True)):
        order = Order()
        order.know(Schedule([lost, *stops], 30.0, is_sudden=False))
        assert order.may_overtake(STORED, later) is may
