"""What servers must not log."""

import logging

import pytest

from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.logs import Complaints
from tests.simulation.process import Main, Process
from tests.simulation.world import World

log = logging.getLogger(__name__)


UNAVAILABLE = "the store is unavailable: does not answer"


async def complain(_: Process) -> None:
    log.warning("something is odd")
    log.error(UNAVAILABLE)
    log.critical("all is lost")
    try:
        raise ValueError("so it is")
    except ValueError:
        log.warning("it failed", exc_info=True)


def complaints_of(excuses: Excuses, main: Main = complain) -> list[str]:
    complaints = Complaints()
    with World(1) as world, complaints.heard():
        world.start("server", main)
        world.run_for(1.0)
        log.critical("this is no server")
    found = complaints.violations(excuses)
    return [each.partition(": server said at ")[2][7:] for each in found]


def test_a_traceback_and_a_critical_record_of_a_server_are_never_excused() -> None:
    excuses = Excuses()
    excuses.add("freeze_store", 0.0, 2.0)
    assert complaints_of(excuses) == ["all is lost (None)", "it failed (ValueError('so it is'))"]
    assert excuses.used == {"error the store is unavailable: freeze_store": 1}
    assert excuses.judged == {"error in a log": 4}


@pytest.mark.parametrize("fault", ["restart", "set_clock", "kill_server"])
def test_an_error_needs_a_fault_that_explains_it(fault: str) -> None:
    excuses = Excuses()
    excuses.add(fault, 0.0, 2.0)
    assert f"{UNAVAILABLE} (None)" in complaints_of(excuses)


async def miss(_: Process) -> None:
    log.error("%s of shard %d did not arrive: its log has them no more (%s)", "3 entries", 1, "")


@pytest.mark.parametrize(("fault", "is_excused"), [("fail_over", True), ("kill_server", False)])
def test_a_row_may_name_the_form_of_a_record(*, fault: str, is_excused: bool) -> None:
    excuses = Excuses()
    excuses.add(fault, 0.0, 2.0)
    assert (complaints_of(excuses, miss) == []) is is_excused
