"""The journal of a server that is killed, restarted and loses replies is complete, too."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from holdfast.pipeline.ingest import Source, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake
from tests.chaos.arena import arena
from tests.chaos.checker import Result
from tests.chaos.manners import Manner
from tests.chaos.nemesis import Kind, Step
from tests.chaos.talker import SocketTalker
from tests.pipeline.audited import Findings, findings_of, violations
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = (
    Step(0.5, (Kind.EAT_RESPONSES,), 0.2),
    Step(0.5, (Kind.KILL_SERVER,), 0.1),
    Step(0.5, (Kind.RESET,), 0.1),
    Step(0.5, (Kind.RESTART_SERVER,), 0.1),
)
IMPATIENT = {"retries": -1, "responseTimeout": 300, "delay": 100}
# The kinds of events that receivers cause.
KINDS = {"published", "handed", "acked", "refused", "dead", "returned"}


async def torment(home: Path, url: str) -> Result:
    async with arena(home, seed=1, redis=url) as ring:
        ring.add_receiver("joe/1", Manner(refuses_one_in=8, stumbles_at=9, crashes_after=9))
        ring.add_receiver("ann/1", Manner(acks=False, refuses_one_in=7, options=IMPATIENT))
        ring.add_receiver("bob/1", Manner(holds_back_at=15, held_s=0.2), by=SocketTalker)
        ring.add_publisher("careful")
        ring.add_publisher("insistent", has_keys=True)
        return await ring.play(STEPS)


class Begun(NamedTuple):
    """What the receivers saw, and what the journal says about it."""

    result: Result
    lacking: dict[str, int]
    found: Findings
    kinds: set[str]


def begin(spark: "SparkSession", place: Path, opened: ExitStack) -> Begun:
    store = opened.enter_context(ValkeyServer())
    home = place / "home"
    home.mkdir(parents=True)
    result = asyncio.run(torment(home, store.url))
    lake = Lake(place / "lake")
    taken = take_what_is_there(spark, Source(store.url), lake, lambda taken: None)
    with of_lake(lake) as tables:
        kinds = {kind for (kind,) in tables.ask("select kind from {events}").rows}
    return Begun(result, taken.lacking, findings_of(lake), kinds)


@pytest.mark.begun(by=begin)
def test_the_journal_of_a_server_under_faults_has_no_violations(begun: Begun) -> None:
    result, lacking, found, kinds = begun
    assert min(result.processed, result.duplicated) > 0, result.report()
    assert lacking == {}
    assert violations(found) == []
    # The audit reports each kill, because events that were not stored may be missing.
    killed = [row for row in found if row["kind"] == "run.unclean"]
    assert killed
    assert all(row["since"] <= row["until"] for row in killed)
    assert kinds >= KINDS
