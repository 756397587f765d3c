"""Sets up the journal, if it is enabled."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.compose.placement import Placement
from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.shared_queues.places import WaitingPlaces
from holdfast.journal.schema import Kind
from holdfast.journal.writer import JournalWriter
from holdfast.settings import Settings
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.store import Store
from holdfast.store.trimming import trim
from holdfast.units import counted
from holdfast.web.tasks import run_until_closed

log = logging.getLogger(__name__)

_TRIM_EVERY_S = 60.0
# How long a stopping server waits for the store before it writes the final totals.
_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Books:
    """The server's own counts, which the journal audit compares with its events."""

    counters: Counters
    sessions: Sessions
    waiting_places: WaitingPlaces[Session]

    def totals(self) -> dict[str, int]:
        counters = self.counters
        receivers = (*self.sessions, *self.waiting_places.queues())
        return {
            "accepted": counters.accepted,
            **counters.books(),
            "open": sum(each.queue.count for each in receivers),
        }


def make_journal(
    settings: Settings, placement: Placement, store: Store, now: float
) -> JournalWriter | None:
    """Make the journal's writer; None if there is no journal."""
    if not settings.journal:
        return None
    writer = JournalWriter(
        placement.node(settings.node),
        store.journal,
        now=now,
        now_ns=time.time_ns,
        origin=store.deployment.name,
        shard=None if placement.is_alone else placement.number,
    )
    store.journal.note_for(writer)
    return writer


async def begin_run(
    writer: JournalWriter | None, store: Store, now: float, *, goes_on: bool
) -> None:
    """Note the start in the journal, behind what the former process left there.

    Args:
        goes_on: Whether this process goes on with everything that the former one had in memory.
    """
    if writer is not None:
        await store.remove_reported(writer.report_left_notes(await store.journal.left_notes()))
        writer.begin_run(now, goes_on=goes_on)


def begin_journal(
    writer: JournalWriter | None,
    books: Books,
    store: Store,
    settings: Settings,
    stack: AsyncExitStack,
    clock: Callable[[], float],
) -> "RunBooks":
    """Journal what was restored; the stack writes the final totals when the server stops."""
    run = RunBooks(writer, books, store, clock)
    run.begin()
    if writer is not None:
        run_until_closed(stack, _trim(writer, store, settings))
        stack.push_async_callback(run.close)
    return run


async def _trim(writer: JournalWriter, store: Store, settings: Settings) -> None:
    """Remove old frames periodically."""
    while True:
        try:
            trimmed = await trim(
                store,
                writer.journal.node,
                now_ms=writer.journal.clock.read() // 1000,
                age_ms=settings.journal_age,
                size=settings.journal_size,
            )
        except StoreUnavailable as error:
            log.info("cannot trim the journal now: %s", error)
        else:
            writer.unread += trimmed.unread
            if trimmed.unread and trimmed.readers:
                log.warning(
                    "removed %s that not every reader had",
                    counted(trimmed.unread, "journal frame"),
                )
        await asyncio.sleep(_TRIM_EVERY_S)


class RunBooks:
    """Opens and closes the books of a run: the journal's stretch from a start to a stop."""

    def __init__(
        self,
        writer: JournalWriter | None,
        books: Books,
        store: Store,
        clock: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._books = books
        self._store = store
        self._clock = clock
        self._is_closed = False

    def begin(self) -> None:
        """Note what was restored."""
        self._note_restored(self._books.counters.restored)

    def go_on(self) -> None:
        """Begin another run of this process, which had left its place and took it back."""
        if self._writer is None or not self._is_closed:
            return
        self._is_closed = False
        totals = self._books.totals()
        still_open = totals.pop("open")
        # The counters of this process go on: readers subtract what they were at the start.
        self._writer.begin_run(self._clock(), before=totals, goes_on=True)
        for session in self._books.sessions:
            self._writer.session(session, "resumed")
        self._note_restored(still_open)

    def _note_restored(self, number: int) -> None:
        if self._writer is not None:
            self._writer.changed(Kind.BOOKS, "restored", number=number)
            self._writer.flush(self._clock())

    async def close(self) -> None:
        """Note the final totals, unless that is done or the store is away."""
        if self._writer is None or self._is_closed:
            return
        # The totals cover everything recorded before, including the store's notes.
        try:
            await asyncio.wait_for(self._store.answered(), _TIMEOUT_S)
        except TimeoutError:
            return
        self._is_closed = True
        self._writer.flush(self._clock())
        for what, number in self._books.totals().items():
            self._writer.changed(Kind.BOOKS, what, number=number)
        self._writer.changed(Kind.NODE, "stop")
        self._writer.flush(self._clock())
