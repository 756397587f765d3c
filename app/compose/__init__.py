"""The only place that names concrete classes: settings in, a running server out."""

import asyncio
import gc
import importlib
import logging
import os
import random
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from app.bayeux.hooks import check_outcome
from app.bayeux.server import Bayeux
from app.compose.administration import make_administration
from app.compose.cannot_start import CannotStart as CannotStart
from app.compose.data_directory import own_directory
from app.compose.journal import begin_journal, open_journal
from app.compose.listeners import Offer, open_listeners
from app.compose.options import options_of, web_options
from app.compose.places import Places, find_places
from app.compose.storage import Storage, open_storage
from app.delivery.node import Node
from app.journal.clerk import Clerk
from app.settings import Settings
from app.web import fast_lane
from app.web.admin.tokens import Tokens, TokensUnusable, open_tokens
from app.web.clockwork import Clockwork
from app.web.endpoint import Endpoint
from app.web.heads import Heads
from app.web.intake import Intake
from app.web.listener import Listener
from app.web.tasks import Tasks
from app.web.websocket import WebSocketDoor
from extensions.ack import Ack
from extensions.activity import Activity
from extensions.chat import Chat
from extensions.delivery import Delivery
from extensions.timestamp import Timestamp
from extensions.timesync import TimeSync

log = logging.getLogger(__name__)

Pause = Callable[[float, Callable[[float], None]], None]


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """A running server; its URL while it runs, an orderly stop afterwards."""
    async with AsyncExitStack() as stack:
        places = await find_places(settings)
        directory = stack.enter_context(own_directory(settings.data))
        tokens = _open_tokens(settings.data)
        storage = await open_storage(settings, stack, _stop_at_once)
        heads = Heads(settings.hsts_s)
        clockwork = Clockwork(heads)
        clock = clockwork.clock
        tasks = Tasks(clock)
        stack.push_async_callback(tasks.close)
        clerk = await open_journal(settings, storage.store, clock())
        bayeux = _make_bayeux(settings, storage, clockwork, tasks, clerk)
        endpoint = Endpoint(
            bayeux,
            web_options(settings),
            clock,
            clockwork.burst,
            Intake(settings.max_unfinished_bytes),
        )
        administration = make_administration(settings, stack, endpoint, storage, tokens)
        # Clocks of the sessions that come back begin now.
        bayeux.now = clock()
        await storage.load(bayeux, clock)
        begin_journal(clerk, bayeux, storage.store, settings, stack, clock)
        await administration.replays.resume()
        door = WebSocketDoor(endpoint)
        vigil = storage.watch(directory, stack)

        async def readiness() -> str | None:
            return "stopping" if bayeux.is_stopping else vigil.complaint()

        _say_what_is_missing(settings, places)
        _start(clockwork, bayeux, storage, stack)
        offer = Offer(endpoint, door, heads, readiness, administration.application)
        listener, url = await open_listeners(settings, places, offer, stack)
        timeout_s = settings.shutdown_timeout / 1000
        gc_for_a_server()
        try:
            yield url
        finally:
            listener.stop_accepting()
            bayeux.stop(clock())
            # What was said leaves first; then nobody needs to wait for it while closing.
            await _within(timeout_s / 2, listener.drain())
            await _within(timeout_s / 2, _close(door, listener))


def _say_what_is_missing(settings: Settings, places: Places) -> None:
    """What these settings cannot do although one might think so."""
    if "*" in settings.allow_origin:
        log.warning(
            "allow_origin *: pages of origins that are not named one by one cannot use "
            "long-polling with credentials, as cometd.js does: browsers refuse the answers, and "
            "leave them WebSocket"
        )
    if places.admin is None and not places.main.is_private:
        log.info(
            "there is no administration where others reach the server: set admin to an address "
            "for operators, as 127.0.0.1:8081"
        )
    if not fast_lane.is_supported():
        log.warning(
            "fast_lane: not for this version of aiohttp, everything takes the ordinary door"
        )


def _start(clockwork: Clockwork, bayeux: Bayeux, storage: Storage, stack: AsyncExitStack) -> None:
    """Time passes from now on, and turns end."""
    clockwork.start(bayeux)
    stack.callback(clockwork.stop)
    storage.store.flush_by(clockwork.end_turn_soon)


def _make_bayeux(
    settings: Settings,
    storage: Storage,
    clockwork: Clockwork,
    tasks: Tasks,
    clerk: Clerk | None,
) -> Bayeux:
    bayeux = Bayeux(
        options_of(settings),
        node=Node(settings.node, storage.stamps),
        keeper=storage.store,
        witness=clerk,
        new_id=_identifiers().__next__,
        random=random.random,
        on_ready=clockwork.end_turn_soon,
        run_later=tasks,
        is_turn_over=clockwork.allowance.is_over,
    )

    def pause(seconds: float, done: Callable[[float], None]) -> None:
        tasks(asyncio.sleep(seconds), lambda _, now: done(now))

    _install_extensions(bayeux, settings, pause)
    return bayeux


async def _close(door: WebSocketDoor, listener: Listener) -> None:
    await door.close_all()
    await listener.close()


async def _within(seconds: float, goodbye: Coroutine[None, None, None]) -> None:
    """Some clients do not answer, others do not even read: nobody waits for them for ever."""
    try:
        async with asyncio.timeout(seconds):
            await goodbye
    except TimeoutError:
        log.info("stopped without waiting any longer for clients that do not hear")


def _identifiers() -> Iterator[str]:
    """Identities of 128 random bits, which the system is asked for by the dozen."""
    while True:
        digits = secrets.token_hex(64 * 16)
        yield from (digits[start : start + 32] for start in range(0, len(digits), 32))


def gc_for_a_server() -> None:
    """What start-up made stays; the collector looks at the rest less often, as most of it lives."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _install_extensions(bayeux: Bayeux, settings: Settings, pause: Pause) -> None:
    if settings.delivery:
        # Before the acknowledgements: verdicts on single messages count more than whole batches.
        bayeux.extend(Delivery(bayeux))
    if settings.ack:
        announces_batch = settings.allow_message_delivery_during_handshake
        bayeux.extend(Ack(bayeux, announces_batch=announces_batch))
    if settings.timesync:
        bayeux.extend(TimeSync(_wall_ms))
    if settings.chat:
        bayeux.extend(Chat(bayeux, pause))
    if settings.timestamp:
        bayeux.extend(Timestamp(_wall_ms))
    if settings.max_inactivity:
        bayeux.extend(Activity(bayeux, settings.max_inactivity / 1000))
    for name in settings.extension:
        try:
            check_outcome(name.rpartition(":")[2], _load(name)(bayeux))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            raise CannotStart(f"extension {name}: {type(error).__name__}: {error}") from error


def _load(name: str) -> Callable[[Bayeux], object]:
    module, _, factory = name.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        # The operator's modules are where the server is started; an installed command forgets it.
        sys.path.insert(0, os.getcwd())
    loaded: Callable[[Bayeux], object] = getattr(importlib.import_module(module), factory)
    return loaded


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _open_tokens(data: Path) -> Tokens:
    try:
        return open_tokens(data)
    except TokensUnusable as error:
        raise CannotStart(str(error)) from error


def _stop_at_once() -> None:
    """Another process keeps the sessions of this one now: there must not be two."""
    os.kill(os.getpid(), signal.SIGTERM)
