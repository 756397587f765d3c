"""Real servers under faults: whatever happens to them, they keep their promises."""

import asyncio
import math
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.arena import HISTORY, Arena, arena
from tests.chaos.checker import Invariant, Result
from tests.chaos.correspondents import add_correspondents
from tests.chaos.hand_overs import add_people
from tests.chaos.history import What, about, read
from tests.chaos.manners import Manner
from tests.chaos.nemesis import HAND_OVERS, NETWORK, PROMOTIONS, SERVER, Kind, Step, schedule
from tests.chaos.paired import Paired
from tests.chaos.receiver import Receiver
from tests.chaos.requesters import Requester
from tests.chaos.supervised import Supervised
from tests.chaos.talker import SocketTalker

Kinds = tuple[Kind, ...]
# A store that goes back at the moment in which the server is killed keeps no promise.
EVERYTHING = tuple(
    kind for kind in Kind if kind not in (Kind.TAKE_STORE_BACK, *HAND_OVERS, *PROMOTIONS)
)
# A loss of power takes what was not on disk yet.
DEATHS = tuple(kind for kind in SERVER if kind is not Kind.LOSE_POWER)

# Without acks, a lost answer comes again when its response timeout is over.
IMPATIENT = {"retries": -1, "responseTimeout": 2000, "delay": 500}
FEW = {"retries": -1, "maxEntries": 5}

# Parts of the time that was asked for; those with fewer receivers come on top of it.
FULL = 0.5
BRIEF = 0.1
# Until all receivers have something to do.
AT_WORK_S = 100.0
# For what need not drain.
BRIEF_DRAIN_S = 3.0

# How many messages are told about, and how much of each line.
TAG = re.compile(r"[a-z]+-[0-9]+")
TOLD = 3
LONGEST = 400

pytestmark = pytest.mark.slow


def test_the_same_seed_makes_the_same_schedule() -> None:
    assert schedule(7, 60, EVERYTHING) == schedule(7, 60, EVERYTHING)
    assert schedule(7, 60, EVERYTHING) != schedule(8, 60, EVERYTHING)


def test_simultaneous_faults_have_different_targets() -> None:
    steps = schedule(7, 1000, EVERYTHING)
    assert {len(step.kinds) for step in steps} == {1, 2, 3}
    for step in steps:
        assert len({kind.target for kind in step.kinds}) == len(step.kinds)
    assert {kind for step in steps for kind in step.kinds} == set(EVERYTHING)


def test_a_schedule_is_about_as_long_as_asked() -> None:
    steps = schedule(7, 60, EVERYTHING)
    assert 60 <= sum(step.pause_s + step.lasts_s for step in steps) < 64


async def torment(home: Path, seed: int, seconds: float, kinds: Kinds, durability: str) -> Result:
    """Play receivers of all manners until everything is settled."""
    async with arena(home, seed=seed, durability=durability) as ring:
        ring.add_receiver("joe/1", Manner(refuses_one_in=20))
        ring.add_receiver(
            "joe/2", Manner(is_explicit=True, refuses_one_in=30, stumbles_at=60, crashes_after=12)
        )
        ring.add_receiver("ann/1", Manner(acks=False, refuses_one_in=25, options=IMPATIENT))
        ring.add_receiver(
            "ann/2", Manner(acks=False, refuses_one_in=30, options=IMPATIENT), by=SocketTalker
        )
        ring.add_receiver("eve/1", Manner(holds_back_at=150, held_s=0.5))
        ring.add_receiver(
            "bob/1", Manner(refuses_one_in=35, stumbles_at=50, options=FEW), by=SocketTalker
        )
        ring.add_publisher("careful")
        ring.add_publisher("urgent", priorities=(1, 5, 9))
        ring.add_publisher("careless", is_careful=False)
        ring.add_publisher("insistent", has_keys=True)
        add_correspondents(ring)
        ring.add_operator("joe/1", "bob/1", "max/1")
        return await at_work(ring, schedule(seed, seconds, kinds), seconds)


async def at_work(ring: Arena, steps: Sequence[Step], seconds: float) -> Result:
    """Play faults that meet everybody at work, however slow the machine is."""

    def are_at_work() -> bool:
        taken = [each.accepted for each in ring.receivers if isinstance(each, Receiver)]
        asking = [each for each in ring.receivers if isinstance(each, Requester)]
        return all(taken) and sum(taken) > seconds and all(each.replies for each in asking)

    return await ring.play(steps, within_s=seconds, is_time=are_at_work, start_s=AT_WORK_S)


async def cut_off(home: Path, seed: int, seconds: float) -> Result:
    """Play sessions without names over a bad network."""
    async with arena(home, seed=seed) as ring:
        ring.add_receiver("plain", Manner(gives_verdicts=False), is_named=False)
        ring.add_receiver("liar", Manner(gives_verdicts=False, lies_after=20), is_named=False)
        ring.add_receiver("fast", Manner(gives_verdicts=False), is_named=False, by=SocketTalker)
        ring.add_publisher("careless", is_careful=False)
        ring.add_publisher("insistent", has_keys=True)
        return await at_work(ring, schedule(seed, seconds, NETWORK), seconds)


async def outlive(home: Path, seed: int, seconds: float) -> Result:
    """Play durable sessions without names whose server dies."""
    async with arena(home, seed=seed, durable="acked") as ring:
        ring.add_receiver("plain", Manner(gives_verdicts=False), is_named=False)
        ring.add_receiver("fast", Manner(gives_verdicts=False), is_named=False, by=SocketTalker)
        ring.add_publisher("insistent", has_keys=True)
        ring.add_publisher("urgent", priorities=(1, 5, 9))
        return await at_work(ring, schedule(seed, seconds, NETWORK + DEATHS), seconds)


async def hand_over(home: Path, seed: int, seconds: float) -> Result:
    """Play sessions with and without names whose servers hand over, and die while they do."""
    async with arena(home, seed=seed, kind=Supervised, durability="always") as ring:
        add_people(ring)
        ring.add_publisher("urgent", priorities=(1, 5, 9))
        return await at_work(ring, schedule(seed, seconds, NETWORK + HAND_OVERS), seconds)


async def fail_over(home: Path, seed: int, seconds: float) -> Result:
    """Play sessions whose store is replaced by its replica."""
    async with arena(home, seed=seed, kind=Paired, durability="replicas:1") as ring:
        ring.add_receiver("joe/1", Manner(refuses_one_in=20))
        ring.add_receiver("ann/1", Manner(acks=False, options=IMPATIENT))
        # Nothing that waits for her may be missing at the end. Replicas confirm no hold, so it must
        # be there before the first fault.
        eve = ring.add_receiver("eve/1", Manner(holds_back_at=5, held_s=math.inf))
        # Without keys: one may be lost with its message, if that was not confirmed.
        ring.add_publisher("careful")
        ring.add_publisher("urgent", priorities=(1, 5, 9))
        return await ring.play(
            schedule(seed, seconds, NETWORK + PROMOTIONS),
            within_s=seconds,
            drain_s=BRIEF_DRAIN_S,
            is_time=lambda: eve.is_held,
            start_s=AT_WORK_S,
        )


def takers(home: Path) -> set[str]:
    """The receivers that accepted anything."""
    return {each.process for each in read(home / HISTORY) if each.what is What.SETTLE}


@dataclass(frozen=True, slots=True)
class Play:
    """One of several arenas that run at the same time, and its result."""

    home: Path
    seed: int
    seconds: float
    ended: Result | BaseException

    @property
    def result(self) -> Result:
        """The checker's result for its history."""
        if isinstance(self.ended, BaseException):
            raise self.ended
        return self.ended

    def report(self) -> str:
        """The result as text, with the command that repeats it, and what is known of violations."""
        is_failed = isinstance(self.ended, BaseException)
        told = repr(self.ended) if is_failed else self.result.report()
        more = "" if is_failed else "".join(self._stories())
        return f"--chaos-seed {self.seed}, in {self.home}\n{told}\n{more}"

    def _stories(self) -> Iterator[str]:
        """The history of the first messages that violations name."""
        texts = " ".join(each.text for each in self.result.violations)
        for tag in [*dict.fromkeys(TAG.findall(texts))][:TOLD]:
            yield f"{tag}:\n"
            yield from (f"  {line[:LONGEST]}\n" for line in about(self.home / HISTORY, tag))


@pytest.fixture(scope="module")
def plays(
    tmp_path_factory: pytest.TempPathFactory, chaos_s: float, seeds: Iterator[int]
) -> dict[str, Play]:
    """All plays, which run at the same time because they mostly wait."""
    directed: dict[str, tuple[float, Callable[[Path, int, float], Awaitable[Result]]]] = {
        "network": (BRIEF, cut_off),
        "kept": (BRIEF, outlive),
        "hand-overs": (BRIEF, hand_over),
        "failovers": (BRIEF, fail_over),
        "deaths": (FULL, partial(torment, kinds=NETWORK + DEATHS, durability="everysec")),
        "everything": (FULL, partial(torment, kinds=EVERYTHING, durability="always")),
    }
    stages = [
        (tmp_path_factory.mktemp(name), next(seeds), chaos_s * part)
        for name, (part, _) in directed.items()
    ]

    async def run_all() -> list[Result | BaseException]:
        begun = [
            direct(*stage) for stage, (_, direct) in zip(stages, directed.values(), strict=True)
        ]
        return await asyncio.gather(*begun, return_exceptions=True)

    ends = asyncio.run(run_all())
    plays = [Play(*stage, ended) for stage, ended in zip(stages, ends, strict=True)]
    # Shown where a test fails, and by `-s`.
    sys.stdout.writelines(play.report() for play in plays)
    return dict(zip(directed, plays, strict=True))


def test_acknowledging_sessions_lose_nothing_to_the_network(plays: dict[str, Play]) -> None:
    play = plays["network"]
    assert play.result.is_valid, play.report()
    assert play.result.processed > play.seconds, play.report()


def test_acknowledging_sessions_that_are_kept_outlive_their_servers(
    plays: dict[str, Play],
) -> None:
    play = plays["kept"]
    assert play.result.is_valid, play.report()
    assert play.result.processed > play.seconds, play.report()
    history = read(play.home / HISTORY)
    assert not [each for each in history if each.what is What.SESSION_LOST], play.report()


def test_sessions_lose_nothing_to_hand_overs(plays: dict[str, Play]) -> None:
    play = plays["hand-overs"]
    assert play.result.is_valid, play.report()
    assert (play.result.pending, play.result.held) == (0, 0), play.report()
    assert play.result.processed > play.seconds, play.report()


def test_sessions_lose_nothing_that_a_replica_has_confirmed(plays: dict[str, Play]) -> None:
    play = plays["failovers"]
    assert play.result.is_valid, play.report()
    assert min(play.result.processed, play.result.held) > play.seconds, play.report()
    assert play.result.forgotten == 0, play.report()


@pytest.mark.parametrize("name", ["deaths", "everything"])
def test_all_kinds_of_receivers_take_part(plays: dict[str, Play], name: str) -> None:
    correspondents = {"tom/1", "sue/1", "sue/2", "ida/1", "max/1", "eva/1", "reader"}
    assert takers(plays[name].home) >= correspondents | {"joe/1", "ann/1", "eve/1", "bob/1"}


@pytest.mark.parametrize("name", ["deaths", "everything"])
def test_requests_have_one_outcome_when_servers_die(plays: dict[str, Play], name: str) -> None:
    play = plays[name]
    assert Invariant.ONE_OUTCOME not in play.result.broken, play.report()
    assert 0 < play.result.answered < play.result.asked, play.report()


def test_named_sessions_lose_nothing_when_servers_die(plays: dict[str, Play]) -> None:
    play = plays["deaths"]
    assert play.result.is_valid, play.report()
    assert (play.result.pending, play.result.held) == (0, 0), play.report()
    assert play.result.processed > play.seconds, play.report()


def test_named_sessions_lose_nothing_when_everything_fails(plays: dict[str, Play]) -> None:
    play = plays["everything"]
    assert play.result.is_valid, play.report()
    assert (play.result.pending, play.result.held) == (0, 0), play.report()
    assert play.result.processed > play.seconds, play.report()
