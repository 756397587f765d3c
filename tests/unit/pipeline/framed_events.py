"""Events as tasks have them, and the tables that they make, batch by batch, without Spark."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import Event, Kind
from holdfast.pipeline.arrow import ARROW
from holdfast.pipeline.census import Group
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.lives import LIFE
from holdfast.pipeline.made_tables import Settled, settle
from holdfast.pipeline.messages import MESSAGES
from holdfast.pipeline.runs import runs_of


class FramedEvent(NamedTuple):
    """An event in a frame of its own."""

    event: Event
    epoch: str
    seq: int


def one_run(events: Iterable[Event]) -> list[FramedEvent]:
    """The events as those of one run of each node."""
    seqs: dict[str, int] = {}
    framed = []
    for event in events:
        seqs[event.node] = seqs.get(event.node, 0) + 1
        framed.append(FramedEvent(event, "seed-1", seqs[event.node]))
    return framed


def table_of(framed: Sequence[FramedEvent]) -> pa.Table:
    rows = ((*each.event, each.epoch, each.seq, 0) for each in framed)
    named = [dict(zip(ARROW.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, ARROW)


def made_of(framed: Sequence[FramedEvent], before: Settled | None = None) -> Settled:
    """The batch that these events make, after another one."""
    carried = (LIFE.empty_table(), MESSAGES.empty_table())
    if before is not None:
        carried = (open_of(before), before.messages)
    events = table_of([each for each in framed if each.event.msg is not None])
    return settle(events, *carried, runs_of(map(group_of, framed)))


def open_of(batch: Settled) -> pa.Table:
    """The lives that the next batch begins with."""
    return batch.life.filter(pc.equal(batch.life["state"], OPEN))


def group_of(framed: FramedEvent) -> Group:
    """The group that it has in a receipt."""
    event = framed.event
    is_start = event.kind == Kind.NODE and event.what == "start"
    start = (event.ts, framed.seq) if is_start else (None, None)
    return Group(event.node, framed.epoch, event.kind, 1, 0, event.ts, *start)
