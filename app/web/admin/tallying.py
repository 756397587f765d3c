"""Counts what waits in steps, so that no client waits for it."""

import asyncio
import time

from holdfast.bayeux.state.server_state import ServerState
from holdfast.web.admin.tally import Tally

# The most items of each list.
MOST = 100
# How long a count goes on before other work follows, for which clients wait.
_SLICE_S = 0.001


class Tallying:
    """Counts for one caller after the other."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._counting = asyncio.Lock()

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
        return tally, spent_s + time.thread_time() - begun
