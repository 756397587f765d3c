"""When a message that is not stored may come before an earlier one that is."""

from typing import Any

import pytest

from tests.simulation import faults
from tests.simulation.faults import Fault
from tests.simulation.judges.order import Order
from tests.simulation.oracle import Publish
from tests.simulation.schedule import Occurrence, Schedule

OWN: Any = object()
OTHER: Any = object()
STORED = Publish("ann", 1, "/a", 12.1, id="1", accepted_at=12.1)
PASSING = Publish("ann", 2, "/a", 12.2, is_durable=False, id="2", accepted_at=12.2)


def order_with(fault: Fault, at_s: float) -> Order:
    order = Order()
    order.know(Schedule([Occurrence(at_s, fault, 2.0)], 30.0, is_sudden=False), {at_s: OWN})
    order.stores_of = lambda receiver, _: [OTHER, OWN] if receiver == "joe" else [OTHER]
    return order


@pytest.mark.parametrize("fault", [faults.lose_connection, faults.lose_direction])
def test_it_may_while_the_connection_to_a_store_is_silent(fault: Fault) -> None:
    assert order_with(fault, 11.9).may_overtake("joe", STORED, PASSING)
    assert not order_with(fault, 11.9).may_overtake("joe", PASSING, STORED)
    assert not order_with(fault, 20.0).may_overtake("joe", STORED, PASSING)


def test_it_may_not_for_a_fault_that_leaves_stores_alone() -> None:
    assert not order_with(faults.set_clock, 11.9).may_overtake("joe", STORED, PASSING)


def test_it_may_for_longer_if_a_server_does_not_run_meanwhile() -> None:
    lost = Occurrence(3.0, faults.lose_direction, 2.0)
    later = Publish("ann", 2, "/a", 12.2, is_durable=False, id="2", accepted_at=12.2)
    for stops, may in (([], False), ([Occurrence(9.0, faults.suspend_server_in_raise, 6.0)], True)):
        order = Order()
        order.know(Schedule([lost, *stops], 30.0, is_sudden=False), {3.0: OWN})
        assert order.may_overtake("joe", STORED, later) is may


@pytest.mark.parametrize("fault", [faults.freeze_store, faults.hold_reading])
def test_it_may_only_while_a_store_is_away_that_the_earlier_one_needs(fault: Fault) -> None:
    order = order_with(fault, 12.2)
    assert order.may_overtake("joe", STORED, PASSING)
    assert not order.may_overtake("ann", STORED, PASSING)
    order.stores_of = lambda *_: None
    assert order.may_overtake("ann", STORED, PASSING)


@pytest.mark.parametrize("fault", [faults.lose_direction, faults.hold_reading])
def test_it_may_not_for_a_connection_that_leads_to_no_store(fault: Fault) -> None:
    order = order_with(fault, 11.9)
    order.know(Schedule([Occurrence(11.9, fault, 2.0)], 30.0, is_sudden=False), {})
    assert not order.may_overtake("joe", STORED, PASSING)
