"""Builds a running server from settings; the only place that names concrete classes."""

import asyncio
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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.assembly import assemble
from holdfast.bayeux.for_extensions import ForExtensions
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.hooks import check_outcome
from holdfast.compose.administration import make_administration
from holdfast.compose.cannot_start import CannotStart as CannotStart
from holdfast.compose.data_directory import DataDirectory, own_directory
from holdfast.compose.directory_watch import DirectoryWatch
from holdfast.compose.journal import Books, begin_journal, open_journal
from holdfast.compose.listen_addresses import ListenAddresses, find_addresses
from holdfast.compose.listeners import ServedApplications, naming, open_listeners
from holdfast.compose.options import core_options, web_options
from holdfast.compose.storage import Storage, open_storage
from holdfast.delivery.basics.node import Node
from holdfast.delivery.ports.journal_port import NO_JOURNAL
from holdfast.extensions.ack import Ack
from holdfast.extensions.activity import Activity
from holdfast.extensions.chat import Chat
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.extensions.request import Request
from holdfast.extensions.timestamp import Timestamp
from holdfast.extensions.timesync import TimeSync
from holdfast.journal.writer import JournalWriter
from holdfast.settings import Settings
from holdfast.web import aiohttp_parts
from holdfast.web.admin.tokens import Tokens, TokensUnusable, open_tokens
from holdfast.web.endpoint import Endpoint
from holdfast.web.heads import Heads
from holdfast.web.intake import Intake, UnreadRequests
from holdfast.web.listener import Listener
from holdfast.web.request_scheduler import RequestScheduler
from holdfast.web.speaking import SpeakingRight
from holdfast.web.tasks import Tasks
from holdfast.web.ticker import Ticker
from holdfast.web.websocket import WebSocketFrontEnd

if TYPE_CHECKING:
    from holdfast.login.extension import Logins

log = logging.getLogger(__name__)


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """Run a server: yields its URL, and stops it in order at the end."""
    async with AsyncExitStack() as stack:
        addresses = await find_addresses(settings)
        directory = stack.enter_context(own_directory(settings.data))
        tokens = _open_tokens(settings.data)
        storage = await _open_storage(settings, addresses, directory, stack)
        ticker = Ticker(heads := Heads(settings.hsts_s), storage.right)
        clock = ticker.clock
        tasks = Tasks(clock)
        stack.push_async_callback(tasks.close)
        writer = await open_journal(settings, storage.store, clock())
        unread = UnreadRequests()
        bayeux = _make_bayeux(settings, storage, ticker, tasks, writer, unread, tokens)
        server = ForExtensions(bayeux, clock)
        logins = _logins(settings, server, stack, tokens)
        _install_extensions(server, settings)
        endpoint = _make_endpoint(settings, bayeux, ticker, unread, storage.right)
        administration = make_administration(
            settings, stack, endpoint, server, storage, tokens, logins
        )
        ticker.collector.begin()
        await storage.load(bayeux, clock)
        begin_journal(writer, _books(bayeux.state), storage.store, settings, stack, clock)
        await administration.replays.resume()
        websockets = WebSocketFrontEnd(endpoint)
        watch = storage.watch(directory, stack)

        async def readiness() -> str | None:
            return _complaint(bayeux, watch, storage)

        _warn(settings, addresses)
        _start(ticker, bayeux, storage, stack)
        parts = ServedApplications(
            *(endpoint, websockets, heads, readiness),
            administration.application,
            administration.alerts,
        )
        ticker.collector.exempt()
        listener, url = await open_listeners(settings, addresses, parts, stack)
        timeout_s = settings.shutdown_timeout / 1000
        try:
            yield url
        finally:
            listener.stop_accepting()
            heads.end_connections()
            # Pending data leaves first; then connections are closed without waiting.
            letting_go = _let_go(storage, bayeux, clock(), websockets, listener)
            await _within(timeout_s / 2, letting_go)
            await _within(timeout_s / 2, _close(websockets, listener))


async def _open_storage(
    settings: Settings,
    addresses: ListenAddresses,
    directory: DataDirectory,
    stack: AsyncExitStack,
) -> Storage:
    """Open the store. A standby says what it waits for at the address of the server."""
    async with AsyncExitStack() as meanwhile:
        if settings.standby:
            if settings.redis is None:
                raise CannotStart(
                    "standby needs redis: no other server can have a server's own store"
                )
            from holdfast.web.standby import StandbyDoor

            door = StandbyDoor(addresses.main)
            meanwhile.push_async_callback(door.close)
            with naming(addresses.main, "port"):
                await door.open()
        return await open_storage(settings, directory, stack, _stop_at_once)


def _logins(
    settings: Settings, server: ServerApi, stack: AsyncExitStack, tokens: Tokens
) -> "Logins | None":
    """Install the login, if one is configured; only then its cryptography is imported."""
    if not settings.requires_login:
        return None
    from holdfast.compose.login import make_logins

    return make_logins(settings, server, stack, lambda token: tokens.role(token) is not None)


def _complaint(bayeux: Bayeux, watch: DirectoryWatch, storage: Storage) -> str | None:
    """Return why the server cannot do its work now, or None."""
    if bayeux.state.is_stopping:
        return "stopping"
    return watch.complaint() or storage.complaint


def _warn(settings: Settings, addresses: ListenAddresses) -> None:
    """Log what an operator might expect these settings to do, although they do not."""
    if "*" in settings.allow_origin:
        log.warning(
            "allow_origin *: browsers will not let pages of unlisted origins use long-polling with "
            "credentials, as cometd.js does; these pages can use WebSocket. List the origins that "
            "need long-polling"
        )
    if addresses.admin is None and not addresses.main.is_private:
        log.info(
            "the administration is not served, because others can reach this server: set admin to "
            "an address for operators, such as 127.0.0.1:8081"
        )
    if not aiohttp_parts.is_supported():
        log.warning(
            "fast_lane: not supported with this version of aiohttp; aiohttp handles all requests"
        )


def _start(ticker: Ticker, bayeux: Bayeux, storage: Storage, stack: AsyncExitStack) -> None:
    """Start the ticker."""
    ticker.start(bayeux)
    stack.callback(ticker.stop)
    storage.store.flush_by(ticker.end_turn_soon)


def _make_bayeux(
    settings: Settings,
    storage: Storage,
    ticker: Ticker,
    tasks: Tasks,
    writer: JournalWriter | None,
    unread: UnreadRequests,
    tokens: Tokens,
) -> Bayeux:
    return assemble(
        core_options(settings),
        node=Node(settings.node, storage.stamps, storage.store.deployment.name),
        store=storage.store,
        epoch=storage.store.seed,
        journal=writer or NO_JOURNAL,
        client_ids=ClientIds(storage.store.deployment.key, _random_bits().__next__),
        random=random.random,
        on_ready=ticker.end_turn_soon,
        run_later=tasks,
        is_turn_over=ticker.turn_budget.is_over,
        unread_since=unread.since,
        role_of=partial(_role_of, tokens),
    )


def _make_endpoint(
    settings: Settings,
    bayeux: Bayeux,
    ticker: Ticker,
    unread: UnreadRequests,
    right: SpeakingRight,
) -> Endpoint:
    intake = Intake(settings.max_unfinished_bytes)
    return Endpoint(
        bayeux,
        bayeux.state.notices,
        bayeux.state.budgets,
        web_options(settings),
        ticker.clock,
        ticker.coalescer,
        ticker.turn_budget,
        intake,
        RequestScheduler(bayeux, ticker.clock, intake, ticker.turn_budget, unread, right),
        right,
    )


def _role_of(tokens: Tokens, warrant: str) -> str:
    role = tokens.role_by_warrant(warrant)
    return "" if role is None else role.title


def _books(state: ServerState) -> Books:
    return Books(state.counters, state.sessions, state.waiting_places)


async def _let_go(
    storage: Storage,
    bayeux: Bayeux,
    now: float,
    websockets: WebSocketFrontEnd,
    listener: Listener,
) -> None:
    """Answer all held connects, and wait until clients have everything."""
    if storage.is_fenced:
        # Another server speaks for its sessions.
        return
    answered = asyncio.Event()
    bayeux.stop(now, answered.set)
    await answered.wait()
    await asyncio.gather(websockets.close_drained(), listener.drain())


async def _close(websockets: WebSocketFrontEnd, listener: Listener) -> None:
    await websockets.close_all()
    await listener.close()


async def _within(seconds: float, closing: Coroutine[None, None, None]) -> None:
    """Wait this long at most: some clients never answer, others never read."""
    try:
        async with asyncio.timeout(seconds):
            await closing
    except TimeoutError:
        log.info("stopped before some clients had read everything")


def _random_bits() -> Iterator[str]:
    """Yield 128 random bits at a time, read from the system by the dozen."""
    while True:
        digits = secrets.token_hex(64 * 16)
        yield from (digits[start : start + 32] for start in range(0, len(digits), 32))


def _install_extensions(server: ServerApi, settings: Settings) -> None:
    if settings.delivery:
        server.extend(DeliveryWire(server))
    if settings.ack:
        announces_batch = settings.allow_message_delivery_during_handshake
        server.extend(Ack(server, announces_batch=announces_batch))
    if settings.request:
        server.extend(Request(server))
    if settings.timesync:
        server.extend(TimeSync(_wall_ms))
    if settings.chat:
        Chat(server)
    if settings.timestamp:
        server.extend(Timestamp(_wall_ms))
    if settings.max_inactivity:
        server.extend(Activity(server, settings.max_inactivity / 1000))
    for name in settings.extension:
        try:
            check_outcome(name.rpartition(":")[2], _load(name)(server))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            raise CannotStart(f"extension {name}: {type(error).__name__}: {error}") from error


def _load(name: str) -> Callable[[ServerApi], object]:
    module, _, factory = name.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        # Operators' modules are in the working directory, which installed commands do not search.
        sys.path.insert(0, os.getcwd())
    loaded: Callable[[ServerApi], object] = getattr(importlib.import_module(module), factory)
    return loaded


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _open_tokens(data: Path) -> Tokens:
    try:
        return open_tokens(data)
    except TokensUnusable as error:
        raise CannotStart(str(error)) from error


def _stop_at_once() -> None:
    """Stop this process: another one owns the store and its sessions now."""
    os.kill(os.getpid(), signal.SIGTERM)
