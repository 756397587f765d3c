"""The server's sense of time: the end of a turn of the event loop, and the beat of a clock."""

import asyncio

from app.bayeux.server import Bayeux
from app.web.allowance import Allowance
from app.web.burst import Burst
from app.web.heads import Heads
from app.web.running_time import LONGEST_GAP_S, RunningTime

_BEAT_S = 0.1
_BEATS_PER_SECOND = 10
# With its loop this late the server has more to do than it can; new clients come back later.
_CONGESTED_S = 1.0


class Clockwork:
    """Ends turns that left something to say, and calls `Bayeux.tick` ten times a second."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        self._loop = asyncio.get_running_loop()
        # The core knows no other time.
        self.clock = RunningTime(self._loop.time)
        self.allowance = Allowance()
        self.burst = Burst(self.end_turn_soon, self._tell_store)
        self._bayeux: Bayeux | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._beats = 0
        self._is_turn_ending = False

    def end_turn_soon(self) -> None:
        """Somebody is to be told something: do it when everything that came in was read."""
        if not self._is_turn_ending:
            self._is_turn_ending = True
            self._loop.call_soon(self._end_turn)

    def start(self, bayeux: Bayeux) -> None:
        """Run from now on."""
        self._bayeux = bayeux
        self._wind(self._loop.time() + _BEAT_S)
        # What came back from the store may have made extensions speak already.
        self.end_turn_soon()

    def stop(self) -> None:
        """Run no more."""
        if self._beat is not None:
            self._beat.cancel()

    def _wind(self, due: float) -> None:
        self._beat = self._loop.call_at(due, self._strike, due)

    def _strike(self, due: float) -> None:
        now, running = self._loop.time(), self.clock()
        late_s = now - due
        is_after_gap = late_s > LONGEST_GAP_S
        self._wind(now + _BEAT_S if is_after_gap else max(due + _BEAT_S, now))
        self._beats += 1
        if self._beats % _BEATS_PER_SECOND == 0:
            self._heads.refresh()
        if self._bayeux is not None:
            self._bayeux.admission.is_congested = late_s > _CONGESTED_S
            # What clients said while nobody listened is read before anybody is given up.
            if not is_after_gap:
                self._bayeux.tick(running)

    def _tell_store(self) -> None:
        """Of what is handed over the store hears before: who dies while working is counted."""
        if self._bayeux is not None:
            self._bayeux.hub.keeper.flush()

    def _end_turn(self) -> None:
        try:
            if self._bayeux is not None:
                self._bayeux.flush(self.clock())
        finally:
            self._is_turn_ending = False
            self.burst.send()
            if self._bayeux is not None and self._bayeux.has_more:
                # There was no time for it, or somebody became ready while others were told.
                self.end_turn_soon()
