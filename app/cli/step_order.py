"""The order of a message's steps: by time, except that effects follow their causes.

The journal has two sources, which read the clock at different moments of the same turn. The console
has the same rules in `static/console/order.js`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from holdfast.cli.output import Json
from holdfast.journal.schema import STEPS, Stage

# What happens to a copy, by stages: each is the cause of the next ones.
_STAGES = {step.kind: step.stage for step in STEPS}
# The order of steps at one time; all others come behind these.
_RANKS = {step.kind: rank for rank, step in enumerate(STEPS) if not step.is_end}
# The longest time between two readings of the clock in one turn.
_TURN_US = 1_000_000


def in_order(steps: Iterable[Json]) -> list[Json]:
    """Sort steps by time; a step before its cause gets the time of the cause."""
    copies = defaultdict(list)
    placed = [dict(step) for step in steps]
    for step in placed:
        copies[step["receiver"]].append(step)
    for copy in copies.values():
        _settle(copy)
    return sorted(placed, key=lambda step: (step["at_us"], _RANKS.get(step["kind"], len(_RANKS))))


def _settle(copy: Sequence[Json]) -> None:
    """Give each step the time of its cause, if all its possible causes came a little later."""
    # Each replay, and each return by a move, begins another life.
    life = 0
    lives: list[tuple[int, Json]] = []
    for step in sorted(copy, key=lambda step: int(step["at_us"])):
        life += step["kind"] in {"replayed", "entered"}
        lives.append((life, step))
    # The first time of each life, stage and attempt, and of any attempt.
    first: dict[tuple[int, int, int | None], int] = {}
    for stage in Stage:
        for life, step in lives:
            if _STAGES.get(step["kind"]) != stage:
                continue
            attempt, at = step["attempt"], step["at_us"]
            cause = first.get((life, stage - 1, attempt), first.get((life, 0, attempt)))
            if stage and cause is not None and at < cause <= at + _TURN_US:
                step["at_us"] = at = cause
            for known in {attempt, None}:
                seen = (life, stage, known)
                first[seen] = min(at, first.get(seen, at))
