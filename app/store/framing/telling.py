"""Tells a store that has lost changes what it lacks."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from holdfast.delivery.basics.ignoring import ignore
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT
from holdfast.store.format.opening_scripts import finish_upgrade
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.framing.latest import Latest
from holdfast.store.links.link import StoreLink
from holdfast.store.opening.write_right import WriteRight
from holdfast.store.writing.journaling import JournalOutlet
from holdfast.store.writing.reconciliation import Knowledge, Reconciliation
from holdfast.store.writing.turn_buffer import TurnBuffer
from holdfast.store.writing.turn_writer import TurnWriter
from holdfast.store.writing.turn_writes import PendingPublish
from holdfast.store.writing.unanswered_calls import UnansweredCalls

if TYPE_CHECKING:
    from holdfast.store.framing.shard_log import ShardLog

log = logging.getLogger(__name__)

# How long calls may be made in one turn of the event loop.
_SLICE_S = 0.005
# How many publish keys a call may have.
_KEYS = 500
_MOST_BYTES_OF_LETTERS = 8 * 1024**2


class Telling:
    """Runs after the store was opened again.

    First it gets the facts that other shards are to know, then the end of an upgrade, and the
    latest dead letters, publish keys and frames, which are not in memory otherwise. Calls that it
    did not carry out are made again, in their order; then what has waited. So the journal's notes
    are there, and everything that this process has changed so far. Then, while nothing else is
    written, the store gets what it lacks, then how far other logs are taken, and at last the
    publishes without an answer.

    Args:
        answered_at: Returns when the store last answered a probe.
        latest_keys: Returns the latest publish keys, with the ids of their messages.
        know: Returns what this process knows; None if it has not loaded everything yet.
        unconfirmed: Returns the publishes that were stored and wait for replicas.
        on_told: Called at the end.
    """

    def __init__(
        self,
        link: StoreLink,
        keys: RedisKeys,
        right: WriteRight,
        calls: UnansweredCalls,
        writer: TurnWriter,
        buffer: TurnBuffer,
        journal: JournalOutlet,
        *,
        answered_at: Callable[[], float],
        latest_keys: Callable[[], Sequence[tuple[str, int]]],
        know: Callable[[], Knowledge | None],
        unconfirmed: Callable[[], Sequence[PendingPublish]],
        on_told: Callable[[], None],
        shard_log: "ShardLog | None" = None,
    ) -> None:
        self._link = link
        self._keys = keys
        self._right = right
        self._calls = calls
        self._writer = writer
        self._buffer = buffer
        self._journal = journal
        self._loop = asyncio.get_running_loop()
        self._answered_at = answered_at
        # The calls that stored or removed dead letters: only the store has these.
        self._letters = Latest[ScriptCall](_MOST_BYTES_OF_LETTERS)
        self._latest_keys = latest_keys
        self._know = know
        self._unconfirmed = unconfirmed
        self._on_told = on_told
        self._shard_log = shard_log
        self._task: asyncio.Task[None] | None = None

    def remember(self, call: ScriptCall) -> None:
        """Remember a call without its number, if only the store has what it changes."""
        if call.script in (scripts.DEAD_LETTER, scripts.LETTERS_REMOVE):
            now = self._answered_at()
            size = sum(len(word) for word in call.args if isinstance(word, (bytes, str)))
            self._letters.add(_copied(call), size, now)
            self._letters.forget(now)

    def begin(self, limits: KeyLimits) -> None:
        """Begin. New publishes are limited so."""
        # The store is about to forget all batches.
        self._buffer.early.clear()
        self._task = self._loop.create_task(self._run(limits))

    def stop(self) -> None:
        """Stop, because the store has lost changes again, or this process ends."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, limits: KeyLimits) -> None:
        # Whatever fails, what was not carried out is made again, and the store takes writes again.
        with _logged():
            if self._shard_log is not None:
                await self._shard_log.begin_again()
        with _logged():
            await self._tell_latest(limits)
        await self._make(self._calls.make_changes_again())
        await self._write_what_waited()
        with _logged():
            await self._reconcile(limits)
        await self._make(self._calls.make_publishes_again())
        self._task = None
        self._right.resume()
        self._on_told()

    async def _reconcile(self, limits: KeyLimits) -> None:
        known = self._know()
        if known is not None:
            telling = Reconciliation(self._link, self._keys, self._calls.tell, self._buffer, limits)
            await telling.run(known, self._unconfirmed())
            if self._shard_log is not None:
                await self._shard_log.tell_taken()

    async def _tell_latest(self, limits: KeyLimits) -> None:
        """Tell the store the latest of what it alone keeps, before anything follows it."""
        if self._right.layout.number == LAYOUT:
            self._calls.tell(finish_upgrade(self._keys), False)
        self._letters.forget(self._answered_at())
        for call in self._letters.all():
            # Letters that are there stay as they are, and those that are gone stay away.
            self._calls.tell(_copied(call), False)
        keyed = self._latest_keys()
        for at in range(0, len(keyed), _KEYS):
            call = scripts.remember_keys(self._keys, keyed[at : at + _KEYS], limits)
            self._calls.tell(call, True)
            await asyncio.sleep(0)
        await self._journal.tell(self._calls.tell)

    async def _make(self, calls: Iterator[None]) -> None:
        ends_at = perf_counter() + _SLICE_S
        for _ in calls:
            if perf_counter() > ends_at:
                self._link.flush()
                await asyncio.sleep(0)
                ends_at = perf_counter() + _SLICE_S
        self._link.flush()

    async def _write_what_waited(self) -> None:
        """Make the calls for all writes so far, and no others from then on."""
        self._right.may_write = True
        # A very large turn is sent in parts. What follows is written later.
        self._writer.send_behind(ignore)
        await self._writer.sent()
        self._writer.send_all()
        self._right.may_write = False


@contextmanager
def _logged() -> Iterator[None]:
    """Log a fault. The end of the task is none."""
    try:
        yield
    except Exception:
        log.exception("the store was not told everything again")


def _copied(call: ScriptCall) -> ScriptCall:
    """Return the same call with other lists, because these change when a call is made."""
    return ScriptCall(call.script, [*call.keys], [*call.args])
