"""Runs of a node: what only its process had is gone when it starts again.

Each run writes under an epoch of its own: a seed, which stays until the store is emptied, and a
number that grows. A process that lost its store for a while has several, but starts only once.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from pipeline.census import Group

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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


def seed() -> "Column":
    """Of each event the seed of its epoch."""
    # A pattern would cost as much as all the rest of counting.
    number = F.length(F.substring_index("epoch", "-", -1))
    return F.left(F.col("epoch"), F.length("epoch") - number - 1)


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


def with_runs(events: "DataFrame", runs: Runs) -> "DataFrame":
    """Each event with the time at which the run that it is of was found to be over: `over_us`."""
    name = F.concat("node", F.lit("/"), "epoch")
    return events.withColumn("over_us", when(runs.over_us, name))


def carried_with_runs(carried: "DataFrame", runs: Runs) -> "DataFrame":
    """What was carried from earlier batches is of the run before the first start."""
    return carried.withColumn("over_us", when(runs.first_us, F.col("origin")))


def when(told: dict[str, int], name: "Column") -> "Column":
    """What is told of a name; NEVER if nothing is."""
    if not told:
        return F.lit(NEVER)
    words = (F.lit(word) for pair in told.items() for word in pair)
    return F.coalesce(F.try_element_at(F.create_map(*words), name), F.lit(NEVER))
