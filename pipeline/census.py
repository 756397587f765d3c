"""Counts the events of each kind and run, before the work on them begins."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import Kind
from holdfast.pipeline.arrow import ARROW, arrow_of, opened
from holdfast.pipeline.rows import Sums, only_if, summed
from holdfast.pipeline.tasks import Tasks

GROUP = (
    "node string, epoch string, kind string, n bigint, number bigint, since_us bigint, "
    "start_us bigint, start_seq bigint"
)
_BY = ("node", "epoch", "kind")
_SUMS: Sums = {
    "n": ("n", "sum"),
    "number": ("number", "sum"),
    "since_us": ("since_us", "min"),
    "start_us": ("start_us", "min"),
    "start_seq": ("start_seq", "min"),
}
_COLUMNS = [*_BY, "number", "ts", "what", "seq"]


class Group(NamedTuple):
    """The events of one kind of one node under one epoch."""

    node: str
    epoch: str
    kind: str
    n: int
    # The sum of their numbers; for incidents, the number of frames.
    number: int
    # Their earliest time, and the earliest start of the node's process: microseconds since 1970.
    since_us: int
    start_us: int | None
    # The frame that has this start.
    start_seq: int | None


def count(events: pa.RecordBatch) -> pa.Table:
    """Return the groups of some events: GROUP."""
    us = events["ts"].cast(pa.int64())
    is_start = pc.and_(pc.equal(events["kind"], Kind.NODE), pc.equal(events["what"], "start"))
    columns = {
        **{name: events[name] for name in _BY},
        "n": pa.repeat(1, len(events)),
        "number": pc.coalesce(events["number"], 0),
        "since_us": us,
        "start_us": only_if(is_start, us),
        "start_seq": only_if(is_start, events["seq"]),
    }
    return summed(pa.table(columns), _BY, _SUMS)


def add_up(counts: Iterable[pa.Table]) -> pa.Table:
    """Merge groups."""
    return summed(pa.concat_tables(counts), _BY, _SUMS).combine_chunks()


def census(tasks: Tasks, files: Sequence[Path]) -> list[Group]:
    """Return the groups of the events in these files, from receipts where there are any."""
    cores = tasks.cores
    shares = [files[number::cores] for number in range(min(cores, len(files)))]
    return [Group(*row) for row in tasks.run(_count_all, shares, GROUP)]


def _count_all(files: Sequence[Path]) -> Iterator[pa.Table]:
    group = arrow_of(GROUP)
    events = opened(files, ARROW).to_batches(columns=_COLUMNS, use_threads=False)
    yield add_up([group.empty_table(), *(count(rows).cast(group) for rows in events)])
