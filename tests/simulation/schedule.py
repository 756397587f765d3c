"""What goes wrong in a simulated deployment, and when: a seed decides it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from tests.simulation.faults import FAULTS, FAULTS_BY_NAME, FAULTS_OF_SHARDS, SUDDEN, Fault, Stage
from tests.simulation.host_faults import FAULTS_OF_HOSTS
from tests.simulation.store_faults import (
    FAULTS_OF_CLUSTERS,
    FAULTS_OF_EMBEDDED,
    FAULTS_OF_FILES,
    FAULTS_OF_PAIRS,
)
from tests.simulation.store_site import Kind
from tests.simulation.supervisor_faults import below_supervisors, beside_servers

# What may go wrong besides what may with any store.
_FURTHER: dict[Kind, tuple[Fault, ...]] = {
    Kind.SINGLE: FAULTS_OF_FILES,
    Kind.OWN: FAULTS_OF_FILES,
    Kind.EMBEDDED: FAULTS_OF_EMBEDDED,
    Kind.PAIR: FAULTS_OF_PAIRS,
    Kind.CLUSTER: FAULTS_OF_CLUSTERS,
}
# When the first fault may happen, and until when, in true time.
_CALM_S, _SHORTEST_S, _LONGEST_S = 2.0, 5.0, 40.0
_MOST_FAULTS = 12
# How many kinds of faults there are in one seed.
_KINDS = (1, 1, 2, 3, 5, 8, 99)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that goes wrong at a time, for so long."""

    at_s: float
    fault: Fault
    duration_s: float

    def __str__(self) -> str:
        return f"{self.at_s:.3f} {self.fault.__name__} {self.duration_s:.3f}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that goes wrong, in order, and when it is over."""

    occurrences: Sequence[Occurrence]
    over_at_s: float
    # Whether servers can always reach the store, as long as they run.
    is_sudden: bool

    def begin(self, stage: Stage) -> None:
        """Let it go wrong at its time."""
        for each in self.occurrences:
            stage.world.later(each.at_s, partial(_begin, stage, each))


def _begin(stage: Stage, one: Occurrence) -> None:
    stage.world.note("fault", one.fault.__name__)
    stage.world.coverage.mark(f"fault {one.fault.__name__}")
    stage.begun_at_s = one.at_s
    one.fault(stage, one.duration_s)


def possible(
    kind: Kind,
    *,
    has_shards: bool,
    divides: bool = False,
    is_supervised: bool = False,
    has_hosts: bool = False,
) -> Sequence[Fault]:
    """Return what may go wrong with such a store."""
    further = _FURTHER[kind]
    if divides or (has_shards and kind is not Kind.OWN):
        # So far, shards lose what their files lack only with stores of their own; and the command
        # that divides tells no store again what that has lost.
        further = tuple(each for each in further if each not in FAULTS_OF_FILES)
    faults = (*FAULTS, *further, *(FAULTS_OF_SHARDS if has_shards else ()))
    faults += FAULTS_OF_HOSTS if has_hosts else ()
    if kind is Kind.EMBEDDED:
        faults = beside_servers(faults)
    return below_supervisors(faults) if is_supervised else faults


def schedule(
    stage: Stage,
    *,
    has_shards: bool,
    divides: bool,
    among: Collection[str],
    without: Collection[int],
) -> Schedule:
    """Decide what goes wrong.

    Args:
        among: The names of the faults that may happen; if there are none, all may.
        without: Which of those that the seed decides do not happen, by their places in the order.
    """
    random = stage.random
    faults = [
        each
        for each in possible(
            stage.site.kind,
            has_shards=has_shards,
            divides=divides,
            is_supervised=bool(stage.deployment.units),
            has_hosts=stage.deployment.has_hosts,
        )
        if not among or each.__name__ in among
    ]
    faults += [each for each in FAULTS_BY_NAME if each.__name__ in among]
    last = over_at = _CALM_S + random.uniform(_SHORTEST_S, _LONGEST_S)
    # A few kinds at a time: what all together would hide shows.
    kinds = random.sample(faults, min(random.choice(_KINDS), len(faults)))
    found: list[Occurrence] = []
    for _ in range(random.randint(0, _MOST_FAULTS)):
        fault = random.choice(kinds)
        at, duration_s = random.uniform(_CALM_S, last), stage.duration_s()
        duration_s += FAULTS_BY_NAME.get(fault, 0.0)
        over_at = max(over_at, at + duration_s)
        found.append(Occurrence(at, fault, duration_s))
    found.sort(key=lambda each: each.at_s)
    kept = [each for place, each in enumerate(found) if place not in without]
    return Schedule(kept, over_at, SUDDEN.issuperset(kinds))
