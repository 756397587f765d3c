"""Real servers, tormented: whatever happens to them, they keep their word."""

from pathlib import Path

import pytest

from tests.chaos.arena import Arena, arena
from tests.chaos.history import What, read
from tests.chaos.manners import Manner
from tests.chaos.nemesis import NETWORK, SERVER, Kind, schedule
from tests.chaos.talker import SocketTalker

EVERYTHING = tuple(Kind)
# Power goes with what was not on disk yet.
DEATHS = tuple(kind for kind in SERVER if kind is not Kind.LOSE_POWER)

# Without acks a lost answer comes again when the receiver was silent for too long.
IMPATIENT = {"retries": -1, "responseTimeout": 2000, "delay": 500}
FEW = {"retries": -1, "maxEntries": 5}

# Parts of the time that was asked for; those with fewer receivers come on top of it.
FULL = 0.5
BRIEF = 0.1

pytestmark = pytest.mark.slow


def test_the_same_seed_makes_the_same_schedule() -> None:
    assert schedule(7, 60, EVERYTHING) == schedule(7, 60, EVERYTHING)
    assert schedule(7, 60, EVERYTHING) != schedule(8, 60, EVERYTHING)


def test_faults_come_together_but_never_two_to_the_same() -> None:
    steps = schedule(7, 1000, EVERYTHING)
    assert {len(step.kinds) for step in steps} == {1, 2, 3}
    for step in steps:
        assert len({kind.target for kind in step.kinds}) == len(step.kinds)
    assert {kind for step in steps for kind in step.kinds} == set(Kind)


def test_a_schedule_is_about_as_long_as_asked() -> None:
    steps = schedule(7, 60, EVERYTHING)
    assert 60 <= sum(step.pause_s + step.lasts_s for step in steps) < 64


async def torment(ring: Arena, kinds: tuple[Kind, ...], seconds: float) -> None:
    """Receivers of all manners, until everything that was said has been dealt with."""
    ring.add_receiver("joe/1", Manner(refuses_one_in=20))
    ring.add_receiver(
        "joe/2", Manner(is_explicit=True, refuses_one_in=30, stumbles_at=60, crashes_after=12)
    )
    ring.add_receiver("ann/1", Manner(acks=False, refuses_one_in=25, options=IMPATIENT))
    ring.add_receiver("eve/1", Manner(holds_back_at=150, held_s=0.5))
    ring.add_receiver(
        "bob/1", Manner(refuses_one_in=35, stumbles_at=50, options=FEW), by=SocketTalker
    )
    ring.add_publisher("careful")
    ring.add_publisher("urgent", priorities=(1, 5, 9))
    ring.add_publisher("careless", is_careful=False)
    ring.add_publisher("insistent", has_keys=True)
    ring.add_operator("joe/1", "bob/1")
    result = await ring.play(schedule(ring.seed, seconds, kinds), within_s=seconds)
    print(result.report())  # noqa: T201
    assert result.is_valid, result.report()
    assert (result.pending, result.held) == (0, 0), result.report()
    assert result.processed > seconds, result.report()


async def test_acknowledging_sessions_lose_nothing_to_the_network(
    tmp_path: Path, seed: int, chaos_s: float
) -> None:
    seconds = chaos_s * BRIEF
    async with arena(tmp_path, seed=seed) as ring:
        ring.add_receiver("plain", Manner(gives_verdicts=False), is_named=False)
        ring.add_receiver("liar", Manner(gives_verdicts=False, lies_after=20), is_named=False)
        ring.add_receiver("fast", Manner(gives_verdicts=False), is_named=False, by=SocketTalker)
        ring.add_publisher("careless", is_careful=False)
        ring.add_publisher("insistent", has_keys=True)
        result = await ring.play(schedule(seed, seconds, NETWORK), within_s=seconds)
    assert result.is_valid, result.report()
    assert result.processed > seconds, result.report()


async def test_acknowledging_sessions_that_are_kept_outlive_their_servers(
    tmp_path: Path, seed: int, chaos_s: float
) -> None:
    seconds = chaos_s * BRIEF
    async with arena(tmp_path, seed=seed, durable="acked") as ring:
        ring.add_receiver("plain", Manner(gives_verdicts=False), is_named=False)
        ring.add_receiver("fast", Manner(gives_verdicts=False), is_named=False, by=SocketTalker)
        ring.add_publisher("insistent", has_keys=True)
        ring.add_publisher("urgent", priorities=(1, 5, 9))
        result = await ring.play(schedule(seed, seconds, NETWORK + DEATHS), within_s=seconds)
    assert result.is_valid, result.report()
    assert result.processed > seconds, result.report()
    assert not [each for each in read(ring.recorder.path) if each.what is What.SESSION_LOST]


async def test_named_sessions_lose_nothing_when_servers_die(
    tmp_path: Path, seed: int, chaos_s: float
) -> None:
    async with arena(tmp_path, seed=seed, durability="everysec") as ring:
        await torment(ring, NETWORK + DEATHS, chaos_s * FULL)


async def test_named_sessions_lose_nothing_when_everything_fails(
    tmp_path: Path, seed: int, chaos_s: float
) -> None:
    async with arena(tmp_path, seed=seed, durability="always") as ring:
        await torment(ring, EVERYTHING, chaos_s * FULL)
