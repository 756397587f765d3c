"""The journal of a server, if it keeps one."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

from app.bayeux.server import Bayeux
from app.journal.clerk import Clerk
from app.journal.frame import decode_head
from app.journal.schema import Kind
from app.journal.scribe import Scribe
from app.settings import Settings
from app.store.keeping import Store
from app.store.refusals import StoreRefused

# How long a server that stops waits for what its books are compared with.
_PATIENCE_S = 2.0


class StoreOutlet:
    """The store, as far as frames go that are written alone; an `Outlet`."""

    def __init__(self, store: Store, on_lost: Callable[[int], None]) -> None:
        self._store = store
        self._on_lost = on_lost

    @property
    def has_room(self) -> bool:
        return self._store.is_available

    def write(self, frame: bytes, notes: Sequence[int]) -> None:
        self._store.write_frame(frame, partial(self._written, decode_head(frame).n), notes)

    def _written(self, events: int, reply: object) -> None:
        if isinstance(reply, StoreRefused):
            self._on_lost(events)


async def open_journal(settings: Settings, store: Store, now: float) -> Clerk | None:
    """Who writes it from now on; None if nobody does."""
    if not settings.journal:
        return None
    clerk = Clerk(
        settings.node,
        StoreOutlet(store, lambda events: clerk.miss(events)),
        now=now,
        wall_us=_wall_us,
    )
    scribe = Scribe(clerk, _wall_us, clerk.why)
    store.record(scribe)
    scribe.find(await store.left_notes())
    # Ahead of everything that happens now.
    clerk.flush(now)
    clerk.changed(Kind.NODE, _wall_us(), "start")
    clerk.flush(now)
    return clerk


def begin_journal(
    clerk: Clerk | None,
    bayeux: Bayeux,
    store: Store,
    clock: Callable[[], float],
    stack: AsyncExitStack,
) -> None:
    """The server has all that it had before; when it stops, its books are closed."""
    if clerk is not None:
        restored = bayeux.hub.counters.accepted
        clerk.changed(Kind.BOOKS, _wall_us(), "restored", number=restored)
        clerk.flush(clock())
        stack.push_async_callback(_close_books, clerk, bayeux, store, restored, clock)


async def _close_books(
    clerk: Clerk, bayeux: Bayeux, store: Store, restored: int, clock: Callable[[], float]
) -> None:
    # They are compared with all that was told before, by the store's notes, too.
    answered = asyncio.Event()
    store.after(answered.set)
    try:
        await asyncio.wait_for(answered.wait(), _PATIENCE_S)
    except TimeoutError:
        return
    clerk.flush(clock())
    for what, number in _books(bayeux, restored).items():
        clerk.changed(Kind.BOOKS, _wall_us(), what, number=number)
    clerk.changed(Kind.NODE, _wall_us(), "stop")
    clerk.flush(clock())


def _books(bayeux: Bayeux, restored: int) -> dict[str, int]:
    counters = bayeux.hub.counters
    return {
        # By what happened in this life of the server.
        "accepted": counters.accepted - restored,
        "acked": counters.acked,
        "dead": counters.dead,
        "expired": counters.expired,
        "discarded": counters.discarded.total(),
        "open": sum(session.queue.count for session in bayeux.sessions),
    }


def _wall_us() -> int:
    return time.time_ns() // 1000
