"""The live figures, for the console and for scripts."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.basics.session_states import SessionInput, SessionState
from holdfast.delivery.routing.latency import Latencies, LatencySampler
from holdfast.store.letters.search import LetterStatistics
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.census import Census

if TYPE_CHECKING:
    from holdfast.web.admin.system_views import Figures

# A reading is good for this long, and a thousand sessions more make the next one wait longer.
_FRESH_S = 0.9
# Other shards wait for a second. A store that takes no messages may be silent, or only full.
_IN_DOUBT_S = 0.4


class LiveFigures:
    """Takes readings, at most one a second for all callers; less often with many sessions.

    Args:
        clock: Monotonic seconds, as the server counts them.
        letters: Counts the dead letters; raises `StoreUnavailable`.
    """

    def __init__(
        self,
        state: ServerState,
        *,
        alerts: Alerts,
        clock: Callable[[], float],
        version: str,
        letters: Callable[[], Awaitable[LetterStatistics]],
    ) -> None:
        self._hub, self._guard, self._node = state.hub, state.guard, state.node
        self._sessions, self._readers = state.sessions, state.readers
        self._waiting_places = state.waiting_places
        self._alerts = alerts
        self._clock = clock
        self._version = version
        self._letters = letters
        self.started = state.node.now_ms()
        self._latest: Figures | None = None
        self._good_until = 0.0

    def watch(self, *, is_watched: bool) -> None:
        """Begin or end the measurement of latencies and rates, which costs time."""
        hub = self._hub
        if is_watched != (hub.watch is not None):
            hub.watch = LatencySampler(self._clock()) if is_watched else None

    async def read(self) -> "Figures":
        if self._latest is None or self._clock() >= self._good_until:
            self._latest = self._take(await self._count_letters())
        return self._latest

    async def _count_letters(self) -> LetterStatistics:
        """Ask the store: only for a moment if it already has no answer for others."""
        is_well = self._hub.store.takes_messages
        try:
            async with asyncio.timeout(None if is_well else _IN_DOUBT_S):
                return await self._letters()
        except (StoreUnavailable, TimeoutError):
            return LetterStatistics()

    def _take(self, letters: LetterStatistics) -> "Figures":
        begun = time.thread_time()
        now, watch = self._clock(), self._hub.watch
        census = Census.of(self._sessions, self._waiting_places, self._guard, self._hub.counters)
        figures = self._figures(census, letters, None if watch is None else watch.read(now))
        # At most a hundredth of the processor is spent here.
        self._good_until = now + max(_FRESH_S, 100 * (time.thread_time() - begun))
        return figures

    def _figures(
        self, census: Census, letters: LetterStatistics, times: Latencies | None
    ) -> "Figures":
        # Many servers never show them.
        from holdfast.web.admin.system_views import Figures, Latency
        from holdfast.web.admin.views import view_of

        hub, counters, sessions = self._hub, self._hub.counters, self._sessions
        now_ns = self._node.stamp()
        oldest_ms = None if not census.oldest else max(0, now_ns - census.oldest) // NS_PER_MS
        return view_of(
            Figures,
            census,
            counters,
            letters,
            time=now_ns // NS_PER_MS,
            node=self._node.name,
            version=self._version,
            started=self.started,
            discarded=counters.discarded.total(),
            failed=counters.refused.total(),
            oldest_ms=oldest_ms,
            sessions=len(sessions),
            readers=len(self._readers),
            connected=census.states[SessionState.CONNECTED],
            away=census.states[SessionState.AWAY],
            created=sessions.created,
            ended=sum(
                sessions.ended[how.value]
                for how in (SessionInput.DISCONNECT, SessionInput.EXPIRE, SessionInput.FAIL)
            ),
            channels=len(hub.routes),
            channels_held_back=len(self._guard.held),
            store_available=hub.store.takes_messages,
            alerts=len(self._alerts.raised()),
            latency=None if times is None else Latency(*times),
        )
