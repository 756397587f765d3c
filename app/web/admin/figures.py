"""What the server is doing at this moment, in numbers: for the console, and for scripts."""

import time
from collections.abc import Awaitable, Callable

from app.bayeux.life import Input, State
from app.bayeux.server import Bayeux
from app.delivery.watch import Times, Watch
from app.store.connection import StoreUnavailable
from app.store.letter_search import Standing
from app.web.admin.sights import Figures, Latency
from app.web.census import Census

# A reading is good for this long, and a thousand sessions more make the next one wait longer.
_FRESH_S = 0.9
_NS_PER_MS = 1_000_000


class FigureDesk:
    """Takes readings, one a second at most, whoever asks; many sessions are counted less often.

    Args:
        clock: Monotonic seconds, as the server counts them.
        letters: How it stands with the dead letters; raises `StoreUnavailable`.
    """

    def __init__(
        self,
        bayeux: Bayeux,
        *,
        clock: Callable[[], float],
        version: str,
        letters: Callable[[], Awaitable[Standing]],
    ) -> None:
        self._bayeux = bayeux
        self._clock = clock
        self._version = version
        self._letters = letters
        self._started = bayeux.node.now_ms()
        self._latest: Figures | None = None
        self._good_until = 0.0

    def watch(self, *, is_watched: bool) -> None:
        """Begin to measure what is not counted anyway, or stop it."""
        hub = self._bayeux.hub
        if is_watched != (hub.watch is not None):
            hub.watch = Watch(self._clock()) if is_watched else None

    async def read(self) -> Figures:
        if self._latest is None or self._clock() >= self._good_until:
            letters = await self._count_letters()
            self._latest = self._take(letters)
        return self._latest

    async def _count_letters(self) -> Standing | None:
        try:
            return await self._letters()
        except StoreUnavailable:
            return None

    def _take(self, letters: Standing | None) -> Figures:
        begun = time.perf_counter()
        bayeux, now = self._bayeux, self._clock()
        bayeux.now = now
        census = Census.of(bayeux)
        watch = bayeux.hub.watch
        figures = self._figures(census, letters, None if watch is None else watch.read(now))
        # At most a hundredth of the time is spent here.
        self._good_until = now + max(_FRESH_S, 100 * (time.perf_counter() - begun))
        return figures

    def _figures(self, census: Census, letters: Standing | None, times: Times | None) -> Figures:
        bayeux = self._bayeux
        hub, counters, sessions = bayeux.hub, bayeux.hub.counters, bayeux.sessions
        now_ns = bayeux.node.stamp()
        oldest_ms = None if not census.oldest else max(0, now_ns - census.oldest) // _NS_PER_MS
        return Figures(
            time=now_ns // _NS_PER_MS,
            node=bayeux.node.name,
            version=self._version,
            started=self._started,
            published=counters.published,
            accepted=counters.accepted,
            restored=counters.restored,
            acked=counters.acked,
            dead=counters.dead,
            expired=counters.expired,
            discarded=counters.discarded.total(),
            redelivered=counters.redelivered,
            failed=counters.refused.total(),
            waiting=census.waiting,
            handed=census.handed,
            unaccounted=census.unaccounted,
            oldest_ms=oldest_ms,
            sessions=len(sessions),
            connected=census.states[State.CONNECTED],
            away=census.states[State.AWAY],
            durable=census.durable,
            held_back=census.held_back,
            polling=census.polling,
            connects_held=census.connects_held,
            created=sessions.created,
            ended=sum(
                sessions.ended[how.value] for how in (Input.DISCONNECT, Input.EXPIRE, Input.FAIL)
            ),
            channels=len(hub.routes),
            channels_held_back=len(bayeux.guard.held),
            store_available=hub.keeper.takes_messages,
            letters=None if letters is None else letters.total,
            letters_lately=None if letters is None else letters.lately,
            letters_oldest=None if letters is None else letters.oldest,
            latency=None if times is None else Latency(*times),
        )
