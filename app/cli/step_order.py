"""The order of a message's steps: by time, except that effects follow their causes.

The journal has two sources, which read the clock at different moments of the same turn. And each of
several workers has its own clock, which may have been set since. The console has the same
rules in `static/console/order.js`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from holdfast.cli.output import Json
from holdfast.delivery.basics.steps import STEPS, Stage, StepKind

PUBLISHED = StepKind.PUBLISHED
# What happens to a copy, by stages: each is the cause of the next ones.
_STAGES = {step.kind: step.stage for step in STEPS}
# The order of steps at one time; all others come behind these.
_RANKS = {step.kind: rank for rank, step in enumerate(STEPS) if not step.is_end}
# The longest time between two readings of the clock in one turn.
_TURN_US = 1_000_000


def in_order(steps: Iterable[Json]) -> list[Json]:
    """Sort steps by time; a step before its cause gets the time of the cause.

    If the cause is at another worker, all steps of this one are moved by as much.
    """
    copies = defaultdict(list)
    placed = [dict(step) for step in steps]
    _align(placed)
    for step in placed:
        copies[step["receiver"]].append(step)
    for copy in copies.values():
        _settle(copy)
    return sorted(placed, key=lambda step: (step["at_us"], _RANKS.get(step["kind"], len(_RANKS))))


def _align(steps: Sequence[Json]) -> None:
    """Move the clocks of workers on that are behind: nothing happens before the publish.

    A copy enters a queue after it has left another one.
    """
    by_node: dict[str, list[Json]] = defaultdict(list)
    for step in steps:
        # All workers give a publish the time of the one that has accepted it.
        if step["kind"] != PUBLISHED:
            by_node[step["node"]].append(step)
    published = min((step["at_us"] for step in steps if step["kind"] == PUBLISHED), default=None)
    for its in by_node.values():
        if published is not None:
            _move_on(its, published - min(step["at_us"] for step in its))
    moved, entered = (_of_kind(steps, each) for each in (StepKind.MOVED, StepKind.ENTERED))
    for cause, effect in zip(moved, entered, strict=False):
        if cause["node"] != effect["node"]:
            # Of steps at one time, one that ends something would come last.
            _move_on(by_node[effect["node"]], cause["at_us"] + 1 - effect["at_us"])


def _of_kind(steps: Iterable[Json], kind: str) -> list[Json]:
    found = (step for step in steps if step["kind"] == kind)
    return sorted(found, key=lambda step: int(step["at_us"]))


def _move_on(steps: Iterable[Json], by_us: int) -> None:
    if by_us > 0:
        for step in steps:
            step["at_us"] += by_us


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
