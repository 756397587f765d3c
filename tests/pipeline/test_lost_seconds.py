"""Nothing is missing after a replica took over that lacked the last second, and the books say so.

The servers of the store are real, and so is the traffic: publishes with and without keys, to
subscribers, subjects and sessions; work, requests, verdicts, dead letters and histories.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.pipeline.ingest import Source, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.tasks import local_tasks
from tests.chaos.arena import arena
from tests.chaos.checker import Result
from tests.chaos.correspondents import add_correspondents
from tests.chaos.manners import Manner
from tests.chaos.talker import SocketTalker
from tests.pipeline.audited import Findings, findings_of, violations
from tests.pipeline.others import asked
from tests.store.cluster import Cluster, cluster

pytestmark = [pytest.mark.slow, pytest.mark.untraced]

NAMESPACE = "test"
IMPATIENT = {"retries": -1, "responseTimeout": 300, "delay": 100}
LOST_S = 1.0
# How many messages a client says and another one accepts meanwhile, however slow they are.
LOST = 3
TAKES_OVER_S = 60.0
# What the server says when it has told the store everything again.
TOLD = re.compile(r"has what the server knows again: wrote (\d+) messages?, removed (\d+)")


class Played(NamedTuple):
    """What the clients saw, and what the server told the store again."""

    result: Result
    wrote: int
    removed: int


async def lose_a_second(home: Path, nodes: Cluster, ingest: Callable[[], None]) -> Played:
    """Play clients of all kinds over a failover to a replica that lacks the last second."""
    async with arena(home, seed=1, redis=nodes.url, namespace=NAMESPACE) as ring:
        joe = ring.add_receiver(
            "joe/1", Manner(refuses_one_in=20, stumbles_at=30, crashes_after=12)
        )
        ring.add_receiver("ann/1", Manner(acks=False, refuses_one_in=25, options=IMPATIENT))
        ring.add_receiver("bob/1", Manner(holds_back_at=15, held_s=0.2), by=SocketTalker)
        careful = ring.add_publisher("careful")
        ring.add_publisher("insistent", has_keys=True)
        add_correspondents(ring)
        async with ring.crowd():
            await asyncio.sleep(2.0)
            # The next time, it takes moments only, even on a busy machine.
            await asyncio.to_thread(ingest)
            owner = nodes.owner
            # From now on, its replica cannot follow it.
            owner.ask("ACL", "SETUSER", "default", "-psync", "-sync")
            owner.ask("CLIENT", "KILL", "TYPE", "replica")
            said, heard = careful.serial + LOST, joe.accepted + LOST
            await asyncio.sleep(LOST_S)
            async with asyncio.timeout(TAKES_OVER_S):
                while careful.serial < said or joe.accepted < heard:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.1)
            # What is accepted while it reads would be more than a second.
            ring.processes.freeze()
            await asyncio.to_thread(ingest)
            ring.processes.thaw()
            owner.kill()
            async with asyncio.timeout(TAKES_OVER_S):
                while not TOLD.search(ring.processes.log()):  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.1)
            await asyncio.sleep(2.0)
        await ring.scan_at(nodes.owner.directory / "s", NAMESPACE)
        [(wrote, removed)] = TOLD.findall(ring.processes.log())
        return Played(await ring.result(), int(wrote), int(removed))


class Begun(NamedTuple):
    """A failover, and what the audit found, by whether frames were read before it."""

    played: Played
    lacking: dict[str, int]
    found: Findings
    published: int


@pytest.fixture(scope="module", params=[False, True], ids=["read afterwards", "read before, too"])
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Begun:
    home = tmp_path_factory.mktemp("home")
    lake = Lake(home / "lake")
    lacking: dict[str, int] = {}
    with ExitStack() as stack:
        nodes, tasks = stack.enter_context(cluster()), stack.enter_context(local_tasks(1))

        def ingest() -> None:
            source = Source(nodes.url, NAMESPACE)
            lacking.update(take_what_is_there(tasks, source, lake, lambda taken: None).lacking)

        played = asyncio.run(lose_a_second(home, nodes, ingest if request.param else _nothing))
        ingest()
    (published,) = asked(lake, "select count(*) from events where kind = 'published'")
    return Begun(played, lacking, findings_of(lake), published)


def _nothing() -> None:
    """Nobody reads."""


def test_the_failover_lost_messages_and_the_ends_of_others(begun: Begun) -> None:
    assert min(begun.played.wrote, begun.played.removed) > 0


def test_clients_of_all_kinds_get_all_that_was_accepted_and_nothing_twice(begun: Begun) -> None:
    result = begun.played.result
    assert result.is_valid, result.report()
    assert (result.lost, result.pending, result.held) == (0, 0, 0), result.report()
    assert min(result.processed, result.dead, result.answered) > 0, result.report()


def test_the_books_balance_and_no_frame_is_missing(begun: Begun) -> None:
    assert begun.lacking == {}
    assert violations(begun.found) == []
    assert begun.published >= begun.played.result.acked
