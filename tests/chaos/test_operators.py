"""Operators' changes hold, whichever process dies meanwhile."""

import asyncio
from pathlib import Path

import pytest

from tests.chaos.arena import Arena, arena
from tests.chaos.manners import Manner
from tests.chaos.nemesis import Kind

DEATH_S = 0.1
# Enough dead letters for a second, so that the server can die in the middle.
LETTERS_PER_S = 40
# More than are delivered again before it is cancelled, even if this machine stalls for seconds.
SLOW_LETTERS_PER_S = 8
ENOUGH = 30

pytestmark = pytest.mark.slow


def populate(ring: Arena) -> None:
    ring.add_receiver("joe/1", Manner(refuses_one_in=4))
    ring.add_receiver("ann/1", Manner(refuses_one_in=6, is_explicit=True))
    ring.add_publisher("p")
    ring.add_publisher("q")


async def test_a_receiver_stays_held_back_when_the_server_dies(tmp_path: Path) -> None:
    async with arena(tmp_path, seed=1) as ring:
        populate(ring)
        operator = ring.operator()
        async with ring.crowd():
            await operator.hold("joe/1")
            await ring.nemesis.strike((Kind.KILL_SERVER,), DEATH_S)
            await asyncio.sleep(0.5)
            await operator.resume("joe/1")
        result = await ring.result()
    assert result.is_valid, result.report()
    assert (result.pending, result.lost) == (0, 0)


async def test_messages_beyond_the_room_of_a_queue_that_is_held_back_are_dead_letters(
    tmp_path: Path,
) -> None:
    async with arena(tmp_path, seed=1) as ring:
        ring.add_receiver("joe/1", Manner(options={"retries": -1, "queue": {"maxEntries": 20}}))
        ring.add_publisher("p")
        ring.add_publisher("urgent", priorities=(1, 9))
        operator = ring.operator()
        async with ring.crowd():
            await operator.hold("joe/1")
            await ring.letters(1)
            await ring.scan()
            await operator.resume("joe/1")
        result = await ring.result()
    assert result.is_valid, result.report()
    assert result.dead > 0
    assert result.dead + result.processed == result.acked, result.report()


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


async def test_a_replay_that_is_cancelled_and_begun_again_delivers_each_letter_once(
    tmp_path: Path,
) -> None:
    async with arena(tmp_path, seed=1) as ring:
        populate(ring)
        operator = ring.operator()
        async with ring.crowd():
            await ring.letters(ENOUGH)
            await ring.quiet_down()
            first = await operator.replay(rate=SLOW_LETTERS_PER_S)
            await operator.replaying(first)
            await operator.cancel(first)
            cancelled = await operator.replayed(first, within_s=30.0)
            second = await operator.replayed(await operator.replay(), within_s=30.0)
        result = await ring.result()
    assert cancelled["state"] == "cancelled"
    assert 0 < cancelled["sent"] < result.dead
    assert cancelled["sent"] + second["sent"] == result.dead
    assert result.is_valid, result.report()
    assert result.delivered == result.acked * 2 + result.dead, result.report()
