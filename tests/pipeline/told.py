"""Events as tasks have them, and what is made of them, batch by batch, without a Spark."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from app.journal.schema import Event, Kind
from pipeline import messages
from pipeline.arrow import ARROW
from pipeline.census import Group
from pipeline.lake import OPEN
from pipeline.lives import LIFE, lives
from pipeline.runs import carried_with_runs, runs_of, with_runs


class Told(NamedTuple):
    """An event in a frame of its own."""

    event: Event
    epoch: str
    seq: int


class Batch(NamedTuple):
    """What is made of events: lives, unsettled messages, and copies that were lost."""

    life: pa.Table
    messages: pa.Table
    lost: pa.Table

    @property
    def open(self) -> pa.Table:
        """The lives that the next batch begins with."""
        return self.life.filter(pc.equal(self.life["state"], OPEN)).drop_columns(["state"])


def one_run(events: Iterable[Event]) -> list[Told]:
    """All of them of one run of their nodes."""
    seqs: dict[str, int] = {}
    told = []
    for event in events:
        seqs[event.node] = seqs.get(event.node, 0) + 1
        told.append(Told(event, "seed-1", seqs[event.node]))
    return told


def table_of(told: Sequence[Told]) -> pa.Table:
    rows = ((*each.event, each.epoch, each.seq, 0) for each in told)
    named = [dict(zip(ARROW.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, ARROW)


def made_of(told: Sequence[Told], before: Batch | None = None) -> Batch:
    """The batch that these make, behind another."""
    runs = runs_of(map(group_of, told))
    carried = (LIFE.empty_table(), messages.MESSAGES.empty_table())
    if before is not None:
        carried = (before.open, before.messages)
    copies, unsettled = (carried_with_runs(each, runs) for each in carried)
    events = with_runs(table_of([each for each in told if each.event.msg is not None]), runs)
    known = messages.known(events, unsettled)
    now = messages.messages(known)
    return Batch(lives(events, copies, known), messages.unsettled(now), messages.lost(now, runs))


def group_of(told: Told) -> Group:
    """What a receipt says of it."""
    event = told.event
    is_start = event.kind == Kind.NODE and event.what == "start"
    return Group(event.node, told.epoch, event.kind, 1, 0, event.ts, event.ts if is_start else None)
