"""The store of a server: its own Valkey or somebody else's Redis, opened, read and watched."""

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

from app.bayeux.records import discard_orphans, record_of, restore
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.compose.data_directory import DataDirectory
from app.compose.tasks import cancel
from app.compose.vigil import Vigil
from app.delivery.keeper import Kept
from app.delivery.letter_room import LetterLimits, LetterRoom
from app.settings import Settings
from app.store.address import Address
from app.store.embedded import Durability, EmbeddedValkey
from app.store.keeping import Store
from app.store.keys import Keys
from app.store.line import Line
from app.store.promises import warn_if_weaker
from app.store.reader import open_reader
from app.store.replicas import Replicas
from app.store.scripts import SCRIPTS

log = logging.getLogger(__name__)

_CLOSING_S = 2.0


class Stamps:
    """Nanoseconds since 1970, each given once, even if the clock goes back or stands still."""

    def __init__(self, newest: int) -> None:
        self._newest = newest

    def __call__(self) -> int:
        self._newest = max(self._newest + 1, time.time_ns())
        return self._newest


class Storage:
    """The open store of this process."""

    def __init__(
        self,
        url: str,
        line: Line,
        settings: Settings,
        on_fenced: Callable[[], None],
        replicas: Replicas | None,
        embedded: EmbeddedValkey | None,
    ) -> None:
        self.url = url
        self.line = line
        self.store = Store(
            line,
            Keys(settings.namespace),
            node=settings.node,
            seed=lambda: secrets.token_hex(8),
            on_flushed=self._on_flushed,
            on_fenced=on_fenced,
            confirm=None if replicas is None else replicas.confirm,
            most_keys=settings.max_publish_keys,
            letter_room=LetterRoom(
                LetterLimits(
                    count=settings.dead_letter_count,
                    bytes=settings.dead_letter_bytes,
                    share=settings.dead_letter_share_bytes,
                )
            ),
        )
        self.stamps = Stamps(0)
        self._embedded = embedded
        self._bayeux: Bayeux | None = None

    async def open(self) -> None:
        """From now on nobody else writes."""
        self.stamps = Stamps(await self.store.open())

    def watch(self, directory: DataDirectory, stack: AsyncExitStack) -> Vigil:
        """See from now on that the store, and what it rests on, does not vanish."""
        places, line = [directory.is_there], None
        if self._embedded is not None:
            places.append(self._embedded.is_there)
            line = self.line
        vigil = Vigil(places, self.store, line)
        stack.push_async_callback(cancel, asyncio.create_task(vigil.run()))
        return vigil

    async def load(self, bayeux: Bayeux, clock: Callable[[], float]) -> None:
        """Bring back the sessions that were kept, with what waits for them."""
        self._bayeux = bayeux
        count = 0
        async for loaded in self.store.load(partial(discard_orphans, bayeux)):
            # Clocks of sessions begin now; nobody else has told the time yet.
            bayeux.now = clock()
            session = restore(bayeux, loaded.record, loaded.entries)
            if bayeux.witness is not None:
                bayeux.witness.session(session, "resumed")
            count += 1
        bayeux.places.sort()
        if count:
            log.info("%d sessions were kept and are back", count)
        for channel, held in (await self.store.held_channels()).items():
            if bayeux.guard.restore(channel, held, clock()):
                log.warning("a channel is held back as before: %s", held.reason)
            else:
                self.store.release(channel)

    def is_back(self) -> None:
        """What waited for the store may be handed over."""
        if self._bayeux is not None:
            self._bayeux.store_is_back()

    def _on_flushed(self) -> None:
        """The store was emptied: what is in memory is all that there is."""
        bayeux = self._bayeux
        if bayeux is not None:
            for channel, held in bayeux.guard.held.items():
                self.store.hold(channel, held)
            for session in bayeux.sessions:
                if session.is_durable:
                    self._tell_again(bayeux, session)

    def _tell_again(self, bayeux: Bayeux, session: Session) -> None:
        self.store.save(record_of(session, bayeux.node.now_ms()))
        queue = session.queue
        tried = [*queue.handed.values(), *queue.returned.values()]
        for message in (*(entry.message for entry in tried), *queue.waiting):
            if message.is_durable:
                self.store.keep(message, (session.key,), _ignore)
        bayeux.settlement.mark(session, tried)


async def open_storage(
    settings: Settings, stack: AsyncExitStack, on_fenced: Callable[[], None]
) -> Storage:
    """The store, closed with the stack. Raises `StoreUnavailable`."""
    url = settings.redis
    embedded = None
    if url is None:
        embedded = EmbeddedValkey(settings.data, Durability(settings.durability))
        url = await stack.enter_async_context(embedded)
    watch = _Watch()
    line = Line(Address.of(url), scripts=SCRIPTS, on_state=watch.on_state, random=random.random)
    stack.push_async_callback(line.close)
    await line.open()
    replicas = None
    if settings.redis is not None:
        replicas = await _compare(settings, settings.redis, line, stack)
    storage = watch.storage = Storage(url, line, settings, on_fenced, replicas, embedded)
    stack.push_async_callback(storage.store.close, _CLOSING_S)
    await storage.open()
    return storage


async def _compare(
    settings: Settings, url: str, line: Line, stack: AsyncExitStack
) -> Replicas | None:
    """Whether somebody else's server keeps the durability, and the replicas that have to."""
    mode, _, count = settings.durability.partition(":")
    if not count:
        await warn_if_weaker(line, Address.of(url), Durability(mode))
        return None
    replicas = Replicas(open_reader(url), Keys(settings.namespace), int(count))
    stack.push_async_callback(replicas.close)
    await replicas.open()
    return replicas


class _Watch:
    """Hears of the store's coming and going, and tells who waits for it."""

    def __init__(self) -> None:
        self.storage: Storage | None = None

    def on_state(self, is_up: bool, why: str) -> None:
        if not is_up:
            log.error("the store is away: %s", why)
        elif self.storage is not None:
            log.warning("the store is back")
            self.storage.is_back()


def _ignore(_: Kept) -> None:
    """Nobody waits for it."""
