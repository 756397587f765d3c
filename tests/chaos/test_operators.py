"""A replay goes on, whichever process dies meanwhile."""

import asyncio
from pathlib import Path

import pytest

from tests.chaos.arena import Arena, arena
from tests.chaos.manners import Manner
from tests.chaos.nemesis import Kind

DEATH_S = 0.1
# Enough dead letters for a second, so that the server can die in the middle.
LETTERS_PER_S = 40

pytestmark = pytest.mark.slow


def populate(ring: Arena) -> None:
    ring.add_receiver("joe/1", Manner(refuses_one_in=4))
    ring.add_receiver("ann/1", Manner(refuses_one_in=6, is_explicit=True))
    ring.add_publisher("p")
    ring.add_publisher("q")


async def test_a_replay_interrupted_by_a_crash_continues_and_delivers_each_letter_once(
    tmp_path: Path,
) -> None:
    async with arena(tmp_path, seed=1) as ring:
        populate(ring)
        operator = ring.operator()
        async with ring.crowd():
            await asyncio.sleep(0.8)
            await ring.quiet_down()
            replay = await operator.replay(rate=LETTERS_PER_S)
            await asyncio.sleep(0.3)
            await ring.nemesis.strike((Kind.KILL_SERVER,), DEATH_S)
            found = await operator.replayed(replay, within_s=30.0)
        result = await ring.result()
    assert (found["state"], found["sent"]) == ("done", result.dead)
    assert (found["acked"], found["died_again"]) == (found["sent"], 0)
    assert result.is_valid, result.report()
    assert result.delivered == result.acked * 2 + result.dead, result.report()
