"""What servers must not log."""

import logging

from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.logs import Complaints
from tests.simulation.process import Process
from tests.simulation.world import World

log = logging.getLogger(__name__)


async def complain(_: Process) -> None:
    log.error("something is wrong")
    log.critical("all is lost")
    try:
        raise ValueError("so it is")
    except ValueError:
        log.warning("it failed", exc_info=True)


def test_a_traceback_and_a_critical_record_of_a_server_are_violations() -> None:
    complaints = Complaints()
    with World(1) as world, complaints.heard():
        world.start("server", complain)
        world.run_for(1.0)
        log.critical("this is no server")
    found = complaints.violations(Excuses())
    assert [each.partition(": server said at ")[2][7:] for each in found] == [
        "all is lost (None)",
        "it failed (ValueError('so it is'))",
    ]
