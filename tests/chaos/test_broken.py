"""Broken servers, in which the checker must find the violations."""

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chaos.arena import Arena, arena
from tests.chaos.broken.builds import BUILDS
from tests.chaos.checker import Invariant, Result
from tests.chaos.correspondents import add_correspondents
from tests.chaos.manners import Manner
from tests.chaos.nemesis import Kind, Step
from tests.chaos.paired import Paired
from tests.chaos.processes import SERVER, Processes
from tests.chaos.receiver import Receiver
from tests.chaos.supervised import Supervised
from tests.slowness import times_slower

AT_ONCE = 4
REPEATS = 8
AT_LEAST_S = 1.5
# The messages of a receiver that leaves and returns, before the first fault.
ENOUGH = 10
# How long the rest may take on a quiet machine. Messages that a broken server has lost never drain,
# nor do those of a receiver that is held back for good.
BROKEN_DRAIN_S, HELD_DRAIN_S, DRAIN_S = 1.0, 4.0, 10.0
ALWAYS, CONFIRMED = "always", "replicas:1"
# Such a receiver gets lost messages late, but it gets them.
IMPATIENT = {"retries": -1, "responseTimeout": 500, "delay": 100}


@dataclass(frozen=True, slots=True)
class Situation:
    """A server, its faults, and how long some receivers are held back."""

    program: tuple[str, ...]
    steps: tuple[Step, ...]
    held_s: float = 0.4
    durability: str = ALWAYS
    has_subscribers: bool = True
    has_correspondents: bool = False
    hands_over: bool = False
    has_replica: bool = False
    drain_s: float = DRAIN_S


BROKEN = {
    name: Situation(
        ("tests.chaos.broken", name),
        build.steps,
        build.held_s,
        CONFIRMED if build.needs_replica else ALWAYS,
        has_subscribers=not build.is_of_correspondents,
        has_correspondents=build.is_of_correspondents,
        hands_over=build.hands_over,
        has_replica=build.needs_replica,
        drain_s=BROKEN_DRAIN_S,
    )
    for name, build in BUILDS.items()
}
# Faults that reveal each of the broken servers, one after the other.
ALL_STEPS = tuple(
    dict.fromkeys(
        step
        for build in BUILDS.values()
        for step in build.steps
        if Kind.TAKE_STORE_BACK not in step.kinds
        and not build.hands_over
        and not build.needs_replica
    )
)
ALL_HAND_OVERS = tuple(
    dict.fromkeys(step for build in BUILDS.values() if build.hands_over for step in build.steps)
)
WHOLE = Situation(SERVER, ALL_STEPS, has_correspondents=True)
HANDING_OVER = Situation(SERVER, ALL_HAND_OVERS, has_correspondents=True, hands_over=True)
# The store goes back while the server lives, which keeps what it knows.
GOING_BACK = Situation(
    SERVER,
    (
        Step(0.7, (Kind.TAKE_STORE_BACK,), 0.8),
        Step(0.5, (Kind.TAKE_STORE_BACK,), 0.3),
        Step(1.0, (Kind.KILL_SERVER,), 0.1),
    ),
    held_s=2.0,
    has_correspondents=True,
)
PROMOTIONS = (
    Step(0.3, (Kind.PROMOTE_AND_KILL,), 0.5),
    Step(0.3, (Kind.PROMOTE,), 0.5),
    Step(0.3, (Kind.REPLACE_FROZEN,), 0.5),
    Step(0.3, (Kind.REPLACE_FROZEN_AND_KILL,), 0.5),
)
PROMOTING = Situation(
    SERVER, PROMOTIONS, math.inf, CONFIRMED, has_replica=True, drain_s=HELD_DRAIN_S
)
LAGGING = Situation(SERVER, PROMOTIONS, math.inf, has_replica=True, drain_s=HELD_DRAIN_S)
# Not broken, but a durability of memory promises nothing.
FORGETFUL = Situation(SERVER, (Step(0.7, (Kind.LOSE_POWER,), 0.1),), durability="memory")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """The checker's results for all servers, in the same situations."""

    async def run() -> dict[str, Result]:
        turns = asyncio.Semaphore(AT_ONCE)

        async def of(situation: Situation) -> Result:
            async with turns:
                return await play(tmp_path_factory.mktemp("chaos"), situation)

        async def of_all(situations: dict[str, Situation]) -> dict[str, Result]:
            found = await asyncio.gather(*map(of, situations.values()))
            return dict(zip(situations, found, strict=True))

        found = await of_all(
            BROKEN
            | {"whole": WHOLE, "handing over": HANDING_OVER}
            | {"going back": GOING_BACK, "forgetful": FORGETFUL}
            | {"promoting": PROMOTING, "lagging": LAGGING}
        )
        for _ in range(REPEATS):
            # On a busy machine, a situation may not have occurred.
            missed = {name: BROKEN[name] for name in BROKEN if not is_found_out(name, found[name])}
            found |= await of_all(missed)
        return found

    return asyncio.run(run())


def is_found_out(name: str, result: Result) -> bool:
    return BUILDS[name].breaks in result.broken


async def play(home: Path, situation: Situation) -> Result:
    """Play all manners of receivers in a few seconds."""
    program, durability = situation.program, situation.durability
    kind = Paired if situation.has_replica else Processes
    kind = Supervised if situation.hands_over else kind
    async with arena(home, seed=1, program=program, kind=kind, durability=durability) as ring:
        tom = add_correspondents(ring) if situation.has_correspondents else None
        eve = add_subscribers(ring, situation) if situation.has_subscribers else None
        if situation.hands_over:
            ring.add_receiver("plain", Manner(gives_verdicts=False), is_named=False)
        return await ring.play(
            situation.steps,
            at_least_s=AT_LEAST_S,
            drain_s=situation.drain_s * times_slower(most=3.0),
            # There is something to break.
            is_time=lambda: (
                (tom is None or (tom.accepted >= ENOUGH and not tom.is_there))
                and (eve is None or eve.is_held)
            ),
        )


def add_subscribers(ring: Arena, situation: Situation) -> Receiver:
    """All manners of receivers; returns the one that is held back."""
    ring.add_receiver("joe/1", Manner(refuses_one_in=8))
    ring.add_receiver("ann/1", Manner(is_explicit=True, crashes_after=9))
    ring.add_receiver("ann/2", Manner(acks=False, options=IMPATIENT))
    ring.add_publisher("careful")
    ring.add_publisher("careless", is_careful=False)
    if not situation.has_replica:
        # A key may be lost with its message.
        ring.add_publisher("insistent", has_keys=True)
    return ring.add_receiver("eve/1", Manner(holds_back_at=20, held_s=situation.held_s))


@pytest.mark.parametrize("name", BUILDS)
def test_the_checker_finds_each_broken_build(name: str, results: dict[str, Result]) -> None:
    assert is_found_out(name, results[name]), results[name].report()


def test_the_checker_finds_nothing_wrong_with_the_real_server(results: dict[str, Result]) -> None:
    result = results["whole"]
    assert result.is_valid, result.report()
    assert min(result.processed, result.dead, result.duplicated) > 0, result.report()
    assert 0 < result.answered < result.asked, result.report()


def test_the_checker_finds_nothing_wrong_with_servers_that_hand_over(
    results: dict[str, Result],
) -> None:
    result = results["handing over"]
    assert result.is_valid, result.report()
    assert min(result.processed, result.dead) > 0, result.report()


def test_nothing_is_lost_if_the_store_goes_back_while_the_server_lives(
    results: dict[str, Result],
) -> None:
    result = results["going back"]
    assert result.is_valid, result.report()
    assert min(result.processed, result.dead) > 0, result.report()


def test_no_message_that_a_replica_has_confirmed_is_lost(results: dict[str, Result]) -> None:
    result = results["promoting"]
    assert result.is_valid, result.report()
    assert min(result.processed, result.dead) > 0, result.report()
    assert result.forgotten == 0, result.report()


def test_a_replica_that_lags_loses_what_was_confirmed_last_if_the_server_dies_too(
    results: dict[str, Result],
) -> None:
    result = results["lagging"]
    assert result.is_valid, result.report()
    assert min(result.processed, result.dead, result.forgotten) > 0, result.report()


def test_a_store_in_memory_loses_messages(results: dict[str, Result]) -> None:
    assert Invariant.NO_LOSS in results["forgetful"].broken, results["forgetful"].report()


def test_there_are_at_least_ten_broken_builds() -> None:
    assert len(BUILDS) >= 10
