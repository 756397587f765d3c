"""Limits of servers, drawn small in some worlds, so that what is beyond them happens there.

Each is a number that notes when something reaches it.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from random import Random
from types import FunctionType
from typing import Any
from unittest.mock import patch

from tests.simulation.coverage import Coverage

# In how many worlds some limits are small, and how many of all are in such a world.
_WORLDS, _LIMITS = 0.35, 0.4
# Where a limit is, its name, and what it may be. Times are those of a processor, which passes only
# where somebody looks at it.
LIMITS: dict[tuple[str, str], Sequence[float]] = {
    # Turns.
    ("web.scheduling.turn_budget", "_TURN_S"): (4e-6, 20e-6),
    ("store.links.resp", "_TURN_S"): (4e-6, 20e-6),
    ("bayeux.server", "_BETWEEN_CHECKS"): (1, 3),
    ("bayeux.replies.answers", "_MOST_BEHIND"): (4, 20),
    ("bayeux.replies.writing", "_MOST_DURABLE"): (8, 30),
    ("bayeux.replies.writing", "_MOST_WITH_CURSORS"): (8, 30),
    ("bayeux.replies.writing", "_MOST_AGAIN"): (8, 30),
    ("bayeux.expiry.expired_messages", "_MOST"): (1, 5),
    # What is written to the store at once.
    ("store.writing.call_sizes", "MOST"): (60, 200),
    ("store.writing.call_sizes", "FRAME"): (500, 5_000),
    ("store.writing.turn_buffer", "_MOST_SESSIONS"): (1, 3),
    ("store.writing.turn_buffer", "_MOST_OF_BATCH"): (1, 5),
    ("store.framing.shard_log", "_MOST_TOLD"): (1, 3),
    # What is read from it, or told again.
    ("store.writing.loading", "_SESSIONS"): (1, 3),
    ("store.writing.loading", "_MESSAGES"): (1, 5),
    ("store.writing.loading", "_REQUESTS"): (1, 3),
    ("store.framing.log_state", "_FRAMES"): (1, 3),
    ("store.framing.frame_reads", "MOST_FRAMES"): (1, 3),
    ("store.writing.reconciliation", "_STEP"): (1, 5),
    ("store.writing.reconciliation", "_SLICE_S"): (4e-6, 20e-6),
    ("store.writing.reconciliation", "_CALLS"): (1, 3),
    ("store.framing.telling", "_KEYS"): (1, 5),
    ("store.framing.telling", "_SLICE_S"): (4e-6, 20e-6),
    # What the next server gets.
    ("store.format.given_records", "_SLICE_BYTES"): (300, 3_000),
    ("store.format.given_records", "_MOST_ENTRIES"): (1, 5),
    ("bayeux.leaving.giving", "_MOST_NAMES"): (1, 3),
    # Between shards.
    ("cluster.frames", "MOST_BYTES"): (500, 5_000),
    ("cluster.frames", "MOST_ENTRIES"): (1, 5),
    ("cluster.reading", "_MOST_FRAMES"): (1, 3),
    ("cluster.reading", "_MOST_BYTES"): (500, 5_000),
    ("cluster.reading", "_MOST_TAKEN"): (500, 5_000),
    ("cluster.trimming", "KEEP_S"): (1.0, 5.0),
    ("cluster.trimming", "_MOST_REMOVED"): (1, 5),
    ("sharding.followed", "_MOST"): (20, 100),
    ("bayeux.far_work.work_calls", "MOST_ROWS"): (1, 3),
    ("bayeux.far_work.work_calls", "MOST_BYTES"): (300, 2_000),
    ("bayeux.far_work.borrowing", "MOST_AT_ONCE"): (1, 3),
    ("bayeux.state.shared", "_MOST"): (1, 3),
    ("bayeux.services.far_topics", "_MOST"): (1, 3),
    ("bayeux.services.topic_answers", "_MOST_OF_HOME"): (200, 1_000),
    ("bayeux.subscribe.catching_up", "_STEP"): (1, 5),
    ("bayeux.subscribe.history_calls", "_MOST_BYTES"): (300, 2_000),
    ("web.giving.under_way", "MOST_UNDER_WAY"): (1, 3),
    ("web.forwarding.asks", "MOST_OF_PART"): (300, 3_000),
}
# Those that say how many are read or written at once, also to the store, which must not be a number
# of our own.
_UNSEEN = frozenset(
    (
        *("_SESSIONS", "_MESSAGES", "_REQUESTS", "_KEYS", "_CALLS", "_STEP", "_MOST_TOLD"),
        *("_MOST_NAMES", "_MOST_ENTRIES", "_FRAMES", "MOST_FRAMES"),
    )
)

# What a few tens of worlds of shards reach.
REACHED = (
    ("web.scheduling.turn_budget", "_TURN_S"),
    ("bayeux.server", "_BETWEEN_CHECKS"),
    ("bayeux.replies.answers", "_MOST_BEHIND"),
    ("bayeux.replies.writing", "_MOST_DURABLE"),
    ("bayeux.replies.writing", "_MOST_WITH_CURSORS"),
    ("store.writing.call_sizes", "MOST"),
    ("store.writing.turn_buffer", "_MOST_SESSIONS"),
    ("store.writing.turn_buffer", "_MOST_OF_BATCH"),
    ("store.format.given_records", "_SLICE_BYTES"),
    ("cluster.frames", "MOST_ENTRIES"),
    ("cluster.reading", "_MOST_FRAMES"),
    ("cluster.reading", "_MOST_BYTES"),
    ("bayeux.far_work.work_calls", "MOST_ROWS"),
    ("bayeux.far_work.borrowing", "MOST_AT_ONCE"),
    ("web.giving.under_way", "MOST_UNDER_WAY"),
)


def mark_of(module: str, name: str) -> str:
    """Return the mark for something that has reached a limit."""
    return f"small {module} {name}"


class _Limit:
    """Notes that something is as large, or larger. Python asks a subclass first."""

    mark: str
    coverage: Coverage

    def _note(self, other: Any) -> None:
        if other >= self.real:  # type: ignore[attr-defined] # of numbers
            self.coverage.marks.add(self.mark)

    def __lt__(self, other: Any) -> Any:
        self._note(other)
        return self.real < other  # type: ignore[attr-defined] # of numbers

    def __le__(self, other: Any) -> Any:
        self._note(other)
        return self.real <= other  # type: ignore[attr-defined] # of numbers

    def __gt__(self, other: Any) -> Any:
        self._note(other)
        return self.real > other  # type: ignore[attr-defined] # of numbers

    def __ge__(self, other: Any) -> Any:
        self._note(other)
        return self.real >= other  # type: ignore[attr-defined] # of numbers


class _Count(_Limit, int):
    pass


class _Time(_Limit, float):
    pass


@contextmanager
def small_limits(seed: int | str, coverage: Coverage) -> Iterator[None]:
    """Let limits be small meanwhile, if the seed says so."""
    random = Random(f"{seed} limits")
    with ExitStack() as stack:
        if random.random() < _WORLDS:
            for (module, name), (least, most) in LIMITS.items():
                if random.random() < _LIMITS:
                    value: object = _drawn(random, least, most, mark_of(module, name), coverage)
                    if name in _UNSEEN:
                        value = random.randint(int(least), int(most))
                    set_limit(stack, module, name, value)
        yield


def _drawn(random: Random, least: float, most: float, mark: str, coverage: Coverage) -> _Limit:
    is_count = isinstance(least, int)
    made: _Limit = (
        _Count(random.randint(int(least), int(most)))
        if is_count
        else _Time(random.uniform(least, most))
    )
    made.mark, made.coverage = mark, coverage
    return made


def set_limit(stack: ExitStack, place: str, name: str, value: object) -> None:
    """Replace a constant, also where others import it, and where it is a default."""
    module = f"holdfast.{place}"
    before = vars(import_module(module))[name]
    for other in [*sys.modules.values()]:
        if getattr(other, "__name__", "").startswith("holdfast."):
            if vars(other).get(name) is before:
                stack.enter_context(patch.object(other, name, value))
            if other.__name__ == module:
                for function in _functions(other):
                    _replace_defaults(stack, function, before, value)


def _functions(module: Any) -> Iterator[FunctionType]:
    for each in vars(module).values():
        if isinstance(each, FunctionType) and each.__module__ == module.__name__:
            yield each
        elif isinstance(each, type) and each.__module__ == module.__name__:
            yield from (own for own in vars(each).values() if isinstance(own, FunctionType))


def _replace_defaults(
    stack: ExitStack, function: FunctionType, before: object, value: object
) -> None:
    if before in (defaults := function.__defaults__ or ()):
        new = tuple(value if each is before else each for each in defaults)
        stack.enter_context(patch.object(function, "__defaults__", new))
    by_name = function.__kwdefaults__ or {}
    if any(each is before for each in by_name.values()):
        new_by_name = {key: value if each is before else each for key, each in by_name.items()}
        stack.enter_context(patch.object(function, "__kwdefaults__", new_by_name))
