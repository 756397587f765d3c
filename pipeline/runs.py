"""Runs of a node: what only its process had is gone when it starts again.

Each run writes under an epoch of its own: a seed, which stays until the store is emptied, and a
number that grows. A process that lost its store for a while has several, but starts only once.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.census import Group
from pipeline.rows import with_columns

# Later than anything.
NEVER = 2**62


class Runs(NamedTuple):
    """Which runs are over, and since when: microseconds since 1970."""

    # By node and epoch.
    over_us: dict[str, int]
    # By node, the first and the last start of its process.
    first_us: dict[str, int]
    last_us: dict[str, int]


class _Run(NamedTuple):
    node: str
    epoch: str
    began_us: int
    # When its process started, if it did.
    start_us: int | None

    def is_before(self, other: "_Run") -> bool:
        """Of the same node; of numbers that began anew, time has to tell."""
        seed, number = _parts(self.epoch)
        others, later = _parts(other.epoch)
        return number < later if seed == others else self.began_us < other.began_us


def _parts(epoch: str) -> tuple[str, int]:
    seed, _, number = epoch.rpartition("-")
    return (seed, int(number)) if number.isdecimal() else (epoch, 0)


def runs_of(groups: Iterable[Group]) -> Runs:
    """The runs that the events of these groups are of."""
    found: dict[tuple[str, str], _Run] = {}
    for group in groups:
        key = group.node, group.epoch
        run = found.get(key, _Run(*key, group.since_us, group.start_us))
        found[key] = run._replace(
            began_us=min(run.began_us, group.since_us),
            start_us=group.start_us if run.start_us is None else run.start_us,
        )
    runs = Runs({}, {}, {})
    for us, start in sorted((run.start_us, run) for run in found.values() if run.start_us):
        runs.first_us.setdefault(start.node, us)
        runs.last_us[start.node] = us
        for run in found.values():
            if run.node == start.node and run.is_before(start):
                runs.over_us.setdefault(_name(run.node, run.epoch), us)
    return runs


def _name(node: str, epoch: str) -> str:
    return f"{node}/{epoch}"


def with_runs(events: pa.Table, runs: Runs) -> pa.Table:
    """Each event with the time at which the run that it is of was found to be over: `over_us`."""
    name = pc.binary_join_element_wise(events["node"], events["epoch"], "/")
    return with_columns(events, {"over_us": when(runs.over_us, name)})


def carried_with_runs(carried: pa.Table, runs: Runs) -> pa.Table:
    """What was carried from earlier batches is of the run before the first start."""
    return with_columns(carried, {"over_us": when(runs.first_us, carried["origin"])})


def when(told: Mapping[str, int], names: pa.ChunkedArray) -> pa.ChunkedArray:
    """What is told of each name; NEVER if nothing is."""
    times = pa.array([*told.values(), NEVER], pa.int64())
    place = pc.index_in(names, pa.array([*told], pa.string()))
    return times.take(pc.coalesce(place, pa.scalar(len(told), pa.int32())))
