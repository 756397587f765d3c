"""Measures the journal's cost for the server: processor time and bytes per event."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.journal.frame import decode_head
from holdfast.journal.writer import JournalWriter

_BEGINNING = 1_763_596_800_000_000
_TURN_US = 500
# The time between the acks of two receivers.
_ACK_US = 20
_WIRE = b"x" * 200
# Receivers in the turns that are measured together, as in a tenth of a second.
_TOGETHER = 2000


@dataclass(frozen=True, slots=True)
class Traffic:
    """The publishes of one turn of the event loop, and the receivers of each."""

    name: str
    publishes: int
    receivers: int
    # Whether receivers acknowledge, each at its own time; otherwise the transport settles.
    acks: bool = True


TRAFFIC = (
    Traffic("one to one, acknowledged", 1, 1),
    Traffic("batches of 20 to one, acknowledged", 20, 1),
    Traffic("one to 10, acknowledged", 1, 10),
    Traffic("one to 100, acknowledged", 1, 100),
    Traffic("one to 100, plain", 1, 100, acks=False),
    Traffic("five to 100, acknowledged", 5, 100),
    Traffic("one to 1000, acknowledged", 1, 1000),
    Traffic("one to 1000, plain", 1, 1000, acks=False),
)


class Cost(NamedTuple):
    """The cost of one event; `us` has the best, the median and the worst round."""

    us: tuple[float, float, float]
    bytes: float
    events: int


def measure(traffic: Traffic, *, events: int = 100_000, rounds: int = 5) -> Cost:
    """Report this number of events, several times.

    The garbage collector seldom runs, as in a server.
    """
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        costs = [_round(traffic, events) for _ in range(rounds)]
    finally:
        gc.set_threshold(*usual)
    us = sorted(cost_us for cost_us, _, _ in costs)
    return Cost((us[0], statistics.median(us), us[-1]), costs[0][1], costs[0][2])


def _round(traffic: Traffic, events: int) -> tuple[float, float, int]:
    reported = size = 0
    spent = 0.0
    reporter = _Reporter(traffic)
    turns = _turns(traffic)
    while reported < events:
        # Reading the clock costs as much as an event, so it is read once for many turns.
        present = list(islice(turns, max(_TOGETHER // traffic.receivers, 1)))
        began = time.process_time()
        for turn in present:
            reporter.report(turn)
        count, frame = reporter.leave()
        reported += count
        size += len(frame)
        spent += time.process_time() - began
    return spent / reported * 1e6, size / reported, reported


class TurnMessages(NamedTuple):
    """The published messages, and the lists of them that each queue has anyway."""

    at: int
    messages: list[Message]
    batches: list[Sequence[Message]]


def _turns(traffic: Traffic) -> Iterator[TurnMessages]:
    for turn in count(1):
        at = _BEGINNING + turn * _TURN_US
        messages = [
            Message(
                _WIRE,
                # A time within the turn, in nanoseconds.
                id=at * 1000 + n * 1000 + turn * 7919 % 997,
                channel=f"/room/{turn % 20}",
                sender=f"client/somebody/{turn % 7}",
            )
            for n in range(traffic.publishes)
        ]
        yield TurnMessages(at, messages, [list(messages) for _ in range(traffic.receivers)])


class _Reporter:
    """Reports turns to the journal as the server does."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        # Frames that the writer has sent.
        self._frames: list[bytes] = []
        self._writer = JournalWriter("bench", self, now=0.0, now_ns=self._now_ns)
        counters = Counters()
        limits = QueueLimits()
        self._receivers = [
            Receiver(CallbackQueue(limits, counters), n)
            for n in range(100_000, 100_000 + traffic.receivers)
        ]
        self._at = 0

    def _now_ns(self) -> int:
        return self._at * 1000

    def report(self, turn: TurnMessages) -> None:
        """Report what happens in one turn."""
        writer, receivers = self._writer, self._receivers
        self._at, messages, batches = turn
        for message in messages:
            writer.published(message, self._traffic.receivers)
        given = writer.handed if self._traffic.acks else writer.written
        # An event loop, such as uvloop, reads its clock in milliseconds.
        now = self._at // 1000
        for receiver, batch in zip(receivers, batches, strict=True):
            given(receiver, batch, now)
        writer.end_round()
        if self._traffic.acks:
            for receiver, batch in zip(receivers, batches, strict=True):
                self._at += _ACK_US
                writer.acked(receiver, batch, self._at // 1000)

    def leave(self) -> tuple[int, bytes]:
        """Return the number of events that left as a whole frame, and the frame."""
        # Time stands still, so that only full frames leave.
        self._writer.beat(0.0)
        if not self._frames:
            return 0, b""
        frame = self._frames.pop()
        return decode_head(frame).n, frame

    # As an `Outlet`

    is_available = True

    def write_frame(
        self, frame: bytes, notes: Sequence[int], refused: Callable[[], None] | None = None
    ) -> None:
        self._frames.append(frame)
