"""The journal of a server, if it keeps one."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

from app.bayeux.server import Bayeux
from app.compose.tasks import cancel
from app.journal.clerk import Clerk
from app.journal.frame import decode_head
from app.journal.schema import Kind
from app.journal.scribe import Scribe
from app.settings import Settings
from app.store.connection import StoreUnavailable
from app.store.keeping import Store
from app.store.refusals import StoreRefused
from app.store.trimming import trim

log = logging.getLogger(__name__)

_TRIM_EVERY_S = 60.0
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
        now_ns=time.time_ns,
    )
    scribe = Scribe(clerk, clerk.why)
    store.record(scribe)
    await store.remove_told(scribe.find(await store.left_notes()))
    # Ahead of everything that happens now.
    clerk.flush(now)
    clerk.changed(Kind.NODE, clerk.now_us(), "start")
    clerk.flush(now)
    return clerk


def begin_journal(
    clerk: Clerk | None,
    bayeux: Bayeux,
    store: Store,
    settings: Settings,
    stack: AsyncExitStack,
    clock: Callable[[], float],
) -> None:
    """The server has all that it had before; when it stops, its books are closed."""
    if clerk is not None:
        restored = bayeux.hub.counters.restored
        clerk.changed(Kind.BOOKS, clerk.now_us(), "restored", number=restored)
        clerk.flush(clock())
        stack.push_async_callback(cancel, asyncio.create_task(_trim(clerk, store, settings)))
        stack.push_async_callback(_close_books, clerk, bayeux, store, clock)


async def _trim(clerk: Clerk, store: Store, settings: Settings) -> None:
    """What is no more to be read goes, now and then."""
    while True:
        try:
            trimmed = await trim(
                store,
                settings.node,
                now_ms=clerk.now_us() // 1000,
                age_ms=settings.journal_age,
                size=settings.journal_size,
            )
        except StoreUnavailable as error:
            log.info("the journal is not trimmed for a while: %s", error)
        else:
            clerk.unread += trimmed.unread
            if trimmed.unread and trimmed.readers:
                log.warning("%d frames of the journal went unread", trimmed.unread)
        await asyncio.sleep(_TRIM_EVERY_S)


async def _close_books(
    clerk: Clerk, bayeux: Bayeux, store: Store, clock: Callable[[], float]
) -> None:
    # They are compared with all that was told before, by the store's notes, too.
    answered = asyncio.Event()
    store.after(answered.set)
    try:
        await asyncio.wait_for(answered.wait(), _PATIENCE_S)
    except TimeoutError:
        return
    clerk.flush(clock())
    for what, number in _books(bayeux).items():
        clerk.changed(Kind.BOOKS, clerk.now_us(), what, number=number)
    clerk.changed(Kind.NODE, clerk.now_us(), "stop")
    clerk.flush(clock())


def _books(bayeux: Bayeux) -> dict[str, int]:
    counters = bayeux.hub.counters
    return {
        "accepted": counters.accepted,
        "acked": counters.acked,
        "dead": counters.dead,
        "expired": counters.expired,
        "discarded": counters.discarded.total(),
        "open": sum(session.queue.count for session in bayeux.sessions),
    }
