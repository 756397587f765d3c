"""Runs of a node: when a process starts again, what only the earlier process had is lost.

That does not apply to a process that was given it: its start has a number.

Each run has its own epoch: a seed, which stays until the store is emptied, and a number that grows.
A process that lost its store for a while has several epochs, but only one start.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import Kind
from holdfast.pipeline.census import Group
from holdfast.pipeline.epochs import parts
from holdfast.pipeline.rows import with_columns

# Later than any time.
NEVER = 2**62


class Runs(NamedTuple):
    """The times since which runs are over: microseconds since 1970."""

    # By node and epoch.
    over_us: dict[str, int]
    # By node and epoch: the frame in which the process started, and when. The frames before it have
    # what the process before it left behind.
    start_seq: dict[str, int]
    start_us: dict[str, int]
    # The first start of the process, by node.
    first_us: dict[str, int]


class _Run(NamedTuple):
    node: str
    epoch: str
    began_us: int
    # The start of its process and its frame, if known.
    start_us: int | None
    start_seq: int | None
    # Whether its process went on with all that the one before it had.
    goes_on: bool

    def is_before(self, other: "_Run") -> bool:
        """Return whether this run of the node is earlier; times decide if numbers started again."""
        seed, number = parts(self.epoch)
        others, later = parts(other.epoch)
        return number < later if seed == others else self.began_us < other.began_us


def runs_of(groups: Iterable[Group]) -> Runs:
    """Return the runs of the events in these groups."""
    found: dict[tuple[str, str], _Run] = {}
    for group in groups:
        key = group.node, group.epoch
        run = found.get(key, _Run(*key, group.since_us, None, None, goes_on=False))
        found[key] = run._replace(
            began_us=min(run.began_us, group.since_us),
            start_us=group.start_us if run.start_us is None else run.start_us,
            start_seq=group.start_seq if run.start_seq is None else run.start_seq,
            goes_on=run.goes_on or (group.kind == Kind.NODE and group.number > 0),
        )
    runs = Runs({}, {}, {}, {})
    losing = [run for run in found.values() if not run.goes_on]
    for us, start in sorted((run.start_us, run) for run in losing if run.start_us):
        runs.first_us.setdefault(start.node, us)
        if start.start_seq is not None:
            name = _name(start.node, start.epoch)
            runs.start_seq[name], runs.start_us[name] = start.start_seq, us
        for run in found.values():
            if run.node == start.node and run.is_before(start):
                runs.over_us.setdefault(_name(run.node, run.epoch), us)
    return runs


def _name(node: str, epoch: str) -> str:
    return f"{node}/{epoch}"


def with_runs(events: pa.Table, runs: Runs) -> pa.Table:
    """Add `over_us` to events: the time at which their run was found to be over."""
    name = pc.binary_join_element_wise(events["node"], events["epoch"], "/")
    over, started = when(runs.over_us, name), when(runs.start_us, name)
    is_left = pc.less(events["seq"], when(runs.start_seq, name))
    # Of epochs without a start, no frame is earlier: then both are NEVER.
    over = pc.if_else(is_left.fill_null(False), pc.min_element_wise(over, started), over)
    return with_columns(events, {"over_us": over})


def carried_with_runs(carried: pa.Table, runs: Runs) -> pa.Table:
    """Add `over_us` to carried rows, which belong to the run before the first start."""
    # Rows of earlier versions have no node. Until 0.4, ids began with its name.
    node = pc.coalesce(carried["node"], carried["origin"])
    return with_columns(carried, {"over_us": when(runs.first_us, node)})


def when(times_by_name: Mapping[str, int], names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the time of each name; NEVER if it has none."""
    times = pa.array([*times_by_name.values(), NEVER], pa.int64())
    place = pc.index_in(names, pa.array([*times_by_name], pa.string()))
    return times.take(pc.coalesce(place, pa.scalar(len(times_by_name), pa.int32())))
