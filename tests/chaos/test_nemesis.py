"""Real servers, tormented: whatever happens to them, they keep their word."""

from pathlib import Path

import pytest

from tests.chaos.arena import arena
from tests.chaos.nemesis import NETWORK, Kind, Target, schedule
from tests.chaos.receiver import Manner

EVERYTHING = tuple(Kind)


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


def test_every_kind_has_its_target() -> None:
    assert {kind: kind.target for kind in Kind if kind.value.endswith("server")} == {
        Kind.KILL_SERVER: Target.SERVER,
        Kind.PAUSE_SERVER: Target.SERVER,
        Kind.RESTART_SERVER: Target.SERVER,
        Kind.DEAF_SERVER: Target.NETWORK,
    }


@pytest.mark.timeout(60)
async def test_acknowledging_sessions_survive_the_network(tmp_path: Path, seed: int) -> None:
    async with arena(tmp_path, seed=seed) as ring:
        for number in range(3):
            ring.add_receiver(f"plain-{number}", Manner(gives_verdicts=False), is_named=False)
        ring.add_publisher("careless", is_careful=False)
        result = await ring.play(schedule(seed, 5, NETWORK))
    assert result.is_valid, result.report()
    assert result.acked > 50, result.report()
