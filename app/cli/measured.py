"""The messages that a subscriber of `holdfast bench` has received, and how long they took."""

import asyncio
import math
import time
from collections import Counter

from holdfast.client import Message

# Latencies are counted in steps of 2 %, so that any number of them takes little room.
_STEP = math.log(1.02)
_MS_PER_NS = 1e-6


class LatencyCounts:
    """Latencies of any number of messages."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, ns: int) -> None:
        """Count a latency."""
        self._counts[math.floor(math.log(max(ns, 1)) / _STEP)] += 1

    def quantile_ms(self, share: float) -> float | None:
        """Return the latency that this share of the messages did not exceed."""
        left = share * self._counts.total()
        for step, count in sorted(self._counts.items()):
            left -= count
            if left <= 0:
                return round(math.exp((step + 1) * _STEP) * _MS_PER_NS, 3)
        return None


class SubscriberCounts:
    """Counts the messages of a channel, which are numbered from 0 on."""

    def __init__(self, latencies: LatencyCounts, arrived: asyncio.Event) -> None:
        """`arrived` is set whenever a message comes."""
        self._latencies = latencies
        self._arrived = arrived
        self._last = -1
        self.received = 0
        # Messages that came after a later one, or again.
        self.repeated = 0

    def __call__(self, message: Message) -> None:
        number = message.data["n"]
        self._latencies.add(time.monotonic_ns() - message.data["at"])
        if number > self._last:
            self._last = number
            self.received += 1
        else:
            self.repeated += 1
        self._arrived.set()
