"""Drives the core: the end of each turn of the event loop, and ten ticks a second."""

import asyncio
from time import thread_time

from holdfast.bayeux.server import Bayeux
from holdfast.web.answering.heads import Heads
from holdfast.web.scheduling.collector import Collector
from holdfast.web.scheduling.running_time import LONGEST_GAP_S, RunningTime
from holdfast.web.scheduling.speaking import SpeakingRight
from holdfast.web.scheduling.turn_budget import TurnBudget
from holdfast.web.scheduling.write_coalescer import WriteCoalescer

_BEAT_S = 0.1
_BEATS_PER_SECOND = 10
# How long work that a tick begins may take in its turn.
_TICK_S = 0.001
# A loop this late is overloaded: new clients are asked to return later. Only the server's work
# makes it late: no client has to return because other programs keep the machine busy.
_LAGGING_S = 1.0


class Ticker:
    """Ends turns that have something to send, and calls `Bayeux.tick` ten times a second.

    While this process must not speak, no turn ends, and the core's clock stands still.
    """

    def __init__(self, heads: Heads, right: SpeakingRight) -> None:
        self._heads = heads
        self._right = right
        self._loop = asyncio.get_running_loop()
        # The core's only clock.
        self.clock = RunningTime(self._loop.time)
        self.coalescer = WriteCoalescer(self.end_turn_soon, self._record_hand_overs, right)
        self.turn_budget = TurnBudget(self.end_turn_soon, self.coalescer.send)
        self.collector = Collector()
        self._bayeux: Bayeux | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._beats = 0
        # The processor time of the event loop at the last beat, in seconds.
        self._worked_s = thread_time()
        self._is_turn_ending = False

    def end_turn_soon(self) -> None:
        """Schedule the end of the turn, after everything that has arrived is read."""
        if not self._is_turn_ending:
            self._is_turn_ending = True
            self._loop.call_soon(self._end_turn)

    def start(self, bayeux: Bayeux) -> None:
        """Start ticking."""
        self._bayeux = bayeux
        self._schedule(self._loop.time() + _BEAT_S)
        # Extensions may have sent something while the store was loading.
        self.end_turn_soon()

    def stop(self) -> None:
        """Stop ticking."""
        if self._beat is not None:
            self._beat.cancel()

    def _schedule(self, due: float) -> None:
        self._beat = self._loop.call_at(due, self._tick, due)

    def _tick(self, due: float) -> None:
        now, running = self._loop.time(), self.clock()
        late_s = now - due
        is_after_gap = late_s > LONGEST_GAP_S
        self._schedule(now + _BEAT_S if is_after_gap else max(due + _BEAT_S, now))
        if not self._right.may_speak():
            self._fall_silent()
            return
        self._beats += 1
        if self._beats % _BEATS_PER_SECOND == 0:
            self._heads.refresh()
        before_s, self._worked_s = self._worked_s, thread_time()
        if self._bayeux is not None:
            worked_s = self._worked_s - before_s
            self._bayeux.state.admission.is_lagging = min(late_s, worked_s) > _LAGGING_S
            # After a gap, first read what clients sent in the meantime: no timeout may end before.
            if not is_after_gap:
                # Work that it begins continues at the end of the turn.
                self.turn_budget.begin_anew(_TICK_S)
                self._bayeux.tick(running)
                self.turn_budget.begin_anew()
            # Two callbacks later, when data that arrived in the meantime has been read.
            self._loop.call_soon(self._loop.call_soon, self._collect, self._bayeux)

    def _fall_silent(self) -> None:
        """Stop the time until the silence ends: clients that wait for it must not expire."""
        if not self.clock.is_stopped:
            self.clock.stop()
            self._right.when_speaking(self._speak_again)

    def _speak_again(self) -> None:
        self.clock.go_on()
        self.end_turn_soon()

    def _collect(self, bayeux: Bayeux) -> None:
        self.collector.beat(bayeux.state.counters.accepted)

    def _record_hand_overs(self) -> None:
        """Record hand-overs in the store first, so that a process that dies has counted them."""
        if self._bayeux is not None:
            self._bayeux.state.store.flush()

    def _end_turn(self) -> None:
        if not self._right.may_speak():
            self.turn_budget.forget()
            self._right.when_speaking(self._end_turn)
            return
        # True after a fault too, because it is unknown what it left.
        has_more = self._bayeux is not None
        self.turn_budget.begin_anew()
        try:
            if self._bayeux is not None:
                has_more = self._bayeux.flush(self.clock(), self.coalescer.send)
        finally:
            self._is_turn_ending = False
            self.coalescer.send()
            # Connections that are read next must not suffer for this.
            self.turn_budget.end()
            if has_more:
                self.end_turn_soon()
