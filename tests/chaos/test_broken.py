"""A checker that has never found anything proves nothing: here it has something to find."""

import asyncio
from pathlib import Path

import pytest

from tests.chaos.arena import Arena, arena
from tests.chaos.broken.builds import BUILDS
from tests.chaos.checker import Result
from tests.chaos.nemesis import Step
from tests.chaos.processes import HOLDFAST
from tests.chaos.receiver import Manner

AT_ONCE = 4
AT_LEAST_S = 2.5
# What a broken server has lost never drains.
DRAIN_S = 1.5

BROKEN = {name: (("-m", "tests.chaos.broken", name), build.steps) for name, build in BUILDS.items()}
WHOLE = {
    f"whole server, {len(steps)} steps": (HOLDFAST, steps)
    for steps in {build.steps for build in BUILDS.values()}
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """What the checker says of all of them, in the same situation."""

    async def run() -> dict[str, Result]:
        turns = asyncio.Semaphore(AT_ONCE)

        async def of(program: tuple[str, ...], steps: tuple[Step, ...]) -> Result:
            async with turns:
                return await situation(tmp_path_factory.mktemp("chaos"), program, steps)

        runs = BROKEN | WHOLE
        found = await asyncio.gather(*(of(*run) for run in runs.values()))
        return dict(zip(runs, found, strict=True))

    return asyncio.run(run())


async def situation(home: Path, program: tuple[str, ...], steps: tuple[Step, ...]) -> Result:
    """Everything that a receiver can do, in a few seconds."""
    async with arena(home, seed=1, program=program, durability="always") as ring:
        populate(ring)
        return await ring.play(steps, at_least_s=AT_LEAST_S, drain_s=DRAIN_S)


def populate(ring: Arena) -> None:
    ring.add_receiver("joe/1", Manner(refuses_one_in=8))
    ring.add_receiver("ann/1", Manner(is_explicit=True, crashes_after=9))
    ring.add_receiver("eve/1", Manner(holds_back_at=30, held_s=0.4))
    ring.add_publisher("careful")
    ring.add_publisher("careless", is_careful=False)


@pytest.mark.parametrize("name", BUILDS)
def test_a_broken_server_is_found_out(name: str, results: dict[str, Result]) -> None:
    assert BUILDS[name].breaks in results[name].broken, results[name].report()


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_one_is_not_accused(name: str, results: dict[str, Result]) -> None:
    result = results[name]
    assert result.is_valid, result.report()
    assert min(result.processed, result.dead, result.duplicated) > 0, result.report()


def test_ten_ways_to_be_broken_are_tried() -> None:
    assert len(BUILDS) >= 10
