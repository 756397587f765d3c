"""A wall clock that jumps by a day, ahead and back, changes no promise."""

from pathlib import Path

import pytest

from tests.chaos.arena import arena
from tests.chaos.correspondents import add_correspondents
from tests.chaos.jumping import READ_AHEAD
from tests.chaos.manners import Manner
from tests.chaos.nemesis import Kind, Step

PROGRAM = ("tests.chaos.jumping",)
STEPS = [
    Step(0.5, (Kind.JUMP_CLOCK,), 0.5),
    Step(0.5, (Kind.JUMP_CLOCK, Kind.CUT_STORE), 0.5),
    # The next server knows nothing of the jump, so its clock is a day behind.
    Step(0.5, (Kind.JUMP_CLOCK, Kind.KILL_SERVER), 0.3),
    Step(0.5, (Kind.JUMP_CLOCK, Kind.RESTART_SERVER), 0.3),
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def test_no_message_is_lost_doubled_or_misordered_by_a_clock_that_jumps(
    tmp_path: Path,
) -> None:
    async with arena(tmp_path, seed=1, program=PROGRAM, durability="always") as ring:
        ring.add_receiver("joe/1", Manner(refuses_one_in=8))
        ring.add_receiver("ann/1", Manner(is_explicit=True, crashes_after=9))
        add_correspondents(ring)
        ring.add_publisher("careful")
        ring.add_publisher("insistent", has_keys=True)
        result = await ring.play(STEPS)
        log = ring.processes.log()
    assert result.is_valid, result.report()
    assert result.processed > 0, result.report()
    # In the last two steps, the server that jumped is gone when the jump ends.
    assert log.count(READ_AHEAD) == 2
