"""The journal of a server, if it keeps one."""

import time
from collections.abc import Callable
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


class StoreOutlet:
    """The store, as far as frames go that are written alone; an `Outlet`."""

    def __init__(self, store: Store, on_lost: Callable[[int], None]) -> None:
        self._store = store
        self._on_lost = on_lost

    @property
    def has_room(self) -> bool:
        return self._store.is_available

    def write(self, frame: bytes) -> None:
        self._store.write_frame(frame, partial(self._written, decode_head(frame).n))

    def _written(self, events: int, reply: object) -> None:
        if isinstance(reply, StoreRefused):
            self._on_lost(events)


def open_journal(settings: Settings, store: Store, now: float) -> Clerk | None:
    """Who writes it from now on; None if nobody does."""
    if not settings.journal:
        return None
    clerk = Clerk(
        settings.node,
        StoreOutlet(store, lambda events: clerk.miss(events)),
        now=now,
        wall_us=_wall_us,
    )
    store.record(Scribe(settings.node, _wall_us, clerk.why))
    clerk.changed(Kind.NODE, _wall_us(), "start")
    # Ahead of everything that the store is told.
    clerk.flush(now)
    return clerk


def begin_journal(
    clerk: Clerk | None, bayeux: Bayeux, clock: Callable[[], float], stack: AsyncExitStack
) -> None:
    """The server has all that it had before; when it stops, its books are closed."""
    if clerk is not None:
        restored = bayeux.hub.counters.accepted
        clerk.changed(Kind.BOOKS, _wall_us(), "restored", number=restored)
        clerk.flush(clock())
        stack.callback(_close_books, clerk, bayeux, restored, clock)


def _close_books(clerk: Clerk, bayeux: Bayeux, restored: int, clock: Callable[[], float]) -> None:
    counters = bayeux.hub.counters
    books = {
        # By what happened in this life of the server.
        "accepted": counters.accepted - restored,
        "acked": counters.acked,
        "dead": counters.dead,
        "expired": counters.expired,
        "discarded": counters.discarded.total(),
        "open": sum(session.queue.count for session in bayeux.sessions),
    }
    # They are compared with all that was told before.
    clerk.flush(clock())
    for what, number in books.items():
        clerk.changed(Kind.BOOKS, _wall_us(), what, number=number)
    clerk.changed(Kind.NODE, _wall_us(), "stop")
    clerk.flush(clock())


def _wall_us() -> int:
    return time.time_ns() // 1000
