"""What the journal costs the server: processor time and bytes an event, for typical traffic."""

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

from app.delivery.messages import Message
from app.journal.builder import FrameBuilder
from app.journal.schema import FULL, Kind

_BEGINNING = 1_763_596_800_000_000
_TURN_US = 500
_WIRE = b"x" * 200
# Receivers told in turns that are measured together.
_TOGETHER = 2000


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one turn of the event loop has: publishes, each to so many receivers."""

    name: str
    publishes: int
    receivers: int
    # Receivers acknowledge, each at a time of its own; or the transport does for them.
    acks: bool = True
    # Receivers are known by the ids of what they have, as in frames of scripts.
    kept: bool = False


TRAFFIC = (
    Traffic("one to one, acknowledged", 1, 1),
    Traffic("one to one, kept", 1, 1, kept=True),
    Traffic("batches of 20 to one, acknowledged", 20, 1),
    Traffic("one to 10, acknowledged", 1, 10),
    Traffic("one to 100, acknowledged", 1, 100),
    Traffic("one to 100, kept", 1, 100, kept=True),
    Traffic("one to 100, plain", 1, 100, acks=False),
    Traffic("five to 100, acknowledged", 5, 100),
    Traffic("one to 1000, acknowledged", 1, 1000),
    Traffic("one to 1000, plain", 1, 1000, acks=False),
)


class Cost(NamedTuple):
    """Of one event; `us` has the best, the median and the worst round."""

    us: tuple[float, float, float]
    bytes: float
    events: int


def measure(traffic: Traffic, *, events: int = 100_000, rounds: int = 5) -> Cost:
    """Tell so many events, some times over; as a server's, the collector seldom looks."""
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        costs = [_round(traffic, events) for _ in range(rounds)]
    finally:
        gc.set_threshold(*usual)
    us = sorted(cost_us for cost_us, _, _ in costs)
    return Cost((us[0], statistics.median(us), us[-1]), costs[0][1], costs[0][2])


def _round(traffic: Traffic, events: int) -> tuple[float, float, int]:
    told = size = 0
    spent = 0.0
    builder = FrameBuilder("bench")
    names = [f"anonymous/-{n}" for n in range(100_000, 100_000 + traffic.receivers)]
    turns = _turns(traffic)
    while told < events:
        # Asking for the time costs as much as an event: once for many turns.
        present = list(islice(turns, max(_TOGETHER // traffic.receivers, 1)))
        began = time.process_time()
        for turn in present:
            _tell(builder, traffic, turn, names)
            if builder.count >= FULL:
                told += builder.count
                size += len(builder.frame())
        spent += time.process_time() - began
    return spent / told * 1e6, size / told, told


class Turn(NamedTuple):
    """What was published, and the queues' own lists of it, which the server has anyway."""

    at: int
    messages: list[Message]
    batches: list[Sequence[Message | int]]


def _turns(traffic: Traffic) -> Iterator[Turn]:
    for turn in count(1):
        at = _BEGINNING + turn * _TURN_US
        messages = [
            Message(
                _WIRE,
                # Some time of the turn, in nanoseconds.
                id=at * 1000 + n * 1000 + turn * 7919 % 997,
                channel=f"/room/{turn % 20}",
                sender=f"client/somebody/{turn % 7}",
            )
            for n in range(traffic.publishes)
        ]
        told = [message.id for message in messages] if traffic.kept else messages
        yield Turn(at, messages, [list(told) for _ in range(traffic.receivers)])


def _tell(builder: FrameBuilder, traffic: Traffic, turn: Turn, names: Sequence[str]) -> None:
    at, messages, batches = turn
    for message in messages:
        builder.published(message, at, len(names), len(names) if traffic.kept else 0)
    if not traffic.acks:
        for name, batch in zip(names, batches, strict=True):
            builder.delivered(Kind.WRITTEN, batch, name, at, 1)
        return
    for name, batch in zip(names, batches, strict=True):
        builder.delivered(Kind.HANDED, batch, name, at, 1)
    for after, (name, batch) in enumerate(zip(names, batches, strict=True)):
        builder.delivered(Kind.ACKED, batch, name, at + after)
