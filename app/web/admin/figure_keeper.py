"""Notes the figures of each minute, and whenever an operator asks for them."""

import asyncio
import logging
import math
import time
from collections.abc import Callable

from holdfast.bayeux.state.server_state import ServerState
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.past_figures import PastFigures
from holdfast.web.admin.figure_readings import FigureReadings
from holdfast.web.admin.tallying import Tallying

log = logging.getLogger(__name__)

_MINUTE_S = 60
_MS_PER_S = 1000
# What waits is counted for alerts anyway, every ten seconds at most servers.
_COUNTED_S = 15.0
# A reading is good for this long, ...
_FRESH_S = 0.9
# ... and readings on request take at most this share of the processor.
_SHARE = 0.01
# How many receivers are counted, in a third of a millisecond, before other work follows.
_AT_ONCE = 1000
# How long the last minute may take to be written.
_WRITING_S = 1.0


class FigureKeeper:
    """Keeps the figures of this shard.

    A minute is written when it is over, so a kill loses one at most. `close` writes what there is.

    Args:
        wall_s: Reads the wall clock, in seconds since 1970.
        clock: Reads a clock that cannot be set, in seconds.
    """

    def __init__(
        self,
        state: ServerState,
        past: PastFigures,
        readings: FigureReadings,
        tallying: Tallying,
        *,
        wall_s: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self.past, self.wall_s = past, wall_s
        self._state = state
        self._readings = readings
        self._tallying = tallying
        self._clock = clock
        self._noting, self._reading = asyncio.Lock(), asyncio.Lock()
        self._is_loaded = False
        # When the time began that is not noted yet, and until when a reading is good.
        self._since = self._clock()
        self._good_until = -math.inf
        self._is_paused = False
        self._complaint = ""

    async def run(self) -> None:
        """Note each minute when it is over. Everything must be restored."""
        self._readings.begin()
        self._since = self._clock()
        while True:
            try:
                await self._write()
            except Exception:
                log.exception("the figures of a minute could not be noted")
            await asyncio.sleep(_MINUTE_S - self.wall_s() % _MINUTE_S)
            try:
                await self.note()
            except StoreUnavailable:
                # What happens until the store can be read counts for a later minute.
                continue
            except Exception:
                log.exception("the figures of a minute could not be noted")

    async def read(self) -> PastFigures:
        """Return all figures up to now. Raises `StoreUnavailable` if earlier ones are unknown."""
        # Of many at once, one takes the reading.
        async with self._reading:
            if self._clock() >= self._good_until:
                await self.note()
        return self.past

    async def note(self, within_s: float = _COUNTED_S) -> None:
        """Note what has happened until now, and what waited at most so long ago.

        Raises `StoreUnavailable`.
        """
        async with self._noting:
            if self._is_paused:
                return
            if not self._is_loaded:
                await self.past.load()
                self._is_loaded = True
            waiting = await self._tallying.waiting(within_s)
            spent_s = await self._count_receivers()
            now, wall_s = self._clock(), self.wall_s()
            # The minute in which most of this time was: the clock may have been set meanwhile.
            served_s, self._since = now - self._since, now
            at = max(0, int((wall_s - served_s / 2) // _MINUTE_S))
            row = self._readings.row(at, round(served_s * _MS_PER_S), waiting)
            self.past.note(row, self._readings.rankings())
            self._good_until = now + max(_FRESH_S, spent_s / _SHARE)

    async def _count_receivers(self) -> float:
        """Count what receivers were handed. Returns the processor time that this took."""
        rankings, spent_s = self._state.ledger.rankings, 0.0
        begun = time.thread_time()
        for number, session in enumerate([*self._state.sessions], 1):
            if number % _AT_ONCE == 0:
                spent_s += time.thread_time() - begun
                await asyncio.sleep(0)
                begun = time.thread_time()
            if not session.is_gone:
                rankings.count(session.number, session.key, session.queue.seq)
        return spent_s + time.thread_time() - begun

    async def _write(self) -> None:
        try:
            await self.past.write()
        except StoreUnavailable as error:
            if not self._complaint:
                log.warning("the figures of this minute are written later: %s", error)
            self._complaint = str(error)
        else:
            self._complaint = ""

    async def close(self) -> None:
        """Note and write everything, and then nothing more until `go_on`."""
        try:
            async with asyncio.timeout(_WRITING_S):
                # Clients wait: another count of what waits would take too long.
                await self.note(math.inf)
                await self.past.write()
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("the figures since the last minute are lost: %s", error)
        except Exception:
            # Nothing else depends on them.
            log.exception("the figures since the last minute are lost")
        finally:
            self._is_paused = True

    def go_on(self) -> None:
        """Keep figures again: the next process has not begun."""
        self._is_paused = False
