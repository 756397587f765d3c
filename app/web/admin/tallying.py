"""Counts what waits in steps, so that no client waits for it."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from holdfast.bayeux.state.server_state import ServerState
from holdfast.web.admin.tally import Tally

# The most items of each list.
MOST = 100
# How long a count goes on before other work follows, for which clients wait.
_SLICE_S = 0.001


class Waiting(NamedTuple):
    """How much waits, and how much is in flight; the id of the oldest message of these, if any."""

    waiting: int
    in_flight: int
    oldest: int


class Tallying:
    """Counts for one caller after the other.

    Args:
        clock: Reads a clock that cannot be set, in seconds.
    """

    def __init__(self, state: ServerState, clock: Callable[[], float]) -> None:
        self._state, self._clock = state, clock
        self._counting = asyncio.Lock()
        # What the last count has found, and when.
        self._latest = Waiting(0, 0, 0)
        self._counted_at = -math.inf

    async def waiting(self, within_s: float) -> Waiting:
        """Return what waits, by a count that is no older than this."""
        if self._clock() >= self._counted_at + within_s:
            await self.count()
        return self._latest

    async def count(self) -> tuple[Tally, float]:
        """Count what waits. Also returns the processor time that this took."""
        async with self._counting:
            return await self._count()

    async def _count(self) -> tuple[Tally, float]:
        state = self._state
        has_work = state.work.is_used
        tally = Tally(state.sessions, state.waiting_places, has_work=has_work, most=MOST)
        spent_s, begun, ends_at = 0.0, time.thread_time(), time.monotonic() + _SLICE_S
        for _ in tally.steps():
            if time.monotonic() >= ends_at:
                spent_s += time.thread_time() - begun
                await asyncio.sleep(0)
                begun, ends_at = time.thread_time(), time.monotonic() + _SLICE_S
        oldest = tally.oldest.first()
        first = oldest[0].oldest if oldest else None
        id = 0 if first is None else first.id
        self._latest = Waiting(tally.waiting, tally.in_flight, id)
        self._counted_at = self._clock()
        return tally, spent_s + time.thread_time() - begun
