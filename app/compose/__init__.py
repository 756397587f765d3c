"""Builds a running server from settings; the only place that names concrete classes."""

import asyncio
import importlib
import logging
import os
import random
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.assembly import assemble
from holdfast.bayeux.for_extensions import ForExtensions
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.hooks import check_outcome
from holdfast.compose.administration import Administration, make_administration
from holdfast.compose.cannot_start import CannotStart as CannotStart
from holdfast.compose.data_directory import DataDirectory, claimed
from holdfast.compose.endpoint import make_endpoint, own_figures
from holdfast.compose.journal import Books, begin_journal, begin_run, make_journal
from holdfast.compose.listen_addresses import ListenAddresses, find_addresses
from holdfast.compose.listeners import (
    ServedApplications,
    open_listeners,
    readiness_of,
    warn,
)
from holdfast.compose.listening import MAIN, ListeningSockets, listen, listen_for_commands
from holdfast.compose.manual import docs_url
from holdfast.compose.opening import open_storage
from holdfast.compose.placement import Placement, alone
from holdfast.compose.running_server import RunningServer
from holdfast.compose.several import forwarding_of
from holdfast.compose.storage import Storage
from holdfast.compose.succession import Succession
from holdfast.compose.token_watch import opened_tokens, role_of
from holdfast.compose.waiting import Dismissed as Dismissed
from holdfast.compose.waiting import Waiting, may_wait
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
from holdfast.store.opening.write_right import seed_of
from holdfast.supervisor.control import CONTROL_FILE, LOCK
from holdfast.web.admin.tokens import Tokens
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.answering.heads import Heads
from holdfast.web.doors.adoption import adopt
from holdfast.web.doors.leaving import Leaving
from holdfast.web.scheduling.intake import UnreadRequests
from holdfast.web.scheduling.request_scheduler import RequestScheduler
from holdfast.web.tasks import Tasks, cancel, run_until_closed
from holdfast.web.ticker import Ticker
from holdfast.web.websockets.websocket import WebSocketFrontEnd

if TYPE_CHECKING:
    from holdfast.compose.forwarding import Forwarding
    from holdfast.compose.login import InstalledLogin
    from holdfast.compose.sharding import Sharding
    from holdfast.web.front.listener import Listener
    from holdfast.web.scheduling.request_sink import RequestSink
    from holdfast.web.webhooks.senders import Webhooks

log = logging.getLogger(__name__)


@asynccontextmanager
async def serving(settings: Settings, placement: Placement | None = None) -> AsyncIterator[str]:
    """Run a server without a supervisor: yields its URL, and stops it in order at the end."""
    async with running(settings, Succession(), placement) as server:
        yield server.url


@asynccontextmanager
async def running(
    settings: Settings, succession: Succession, placement: Placement | None = None
) -> AsyncIterator[RunningServer]:
    """Run a server, and stop it in order at the end. Without a place, it is alone."""
    async with AsyncExitStack() as stack:
        placement = placement or alone(settings)
        parts = await _assemble(settings, succession, placement, stack)
        if succession.is_successor:
            server = await _succeed(parts, succession, stack)
        else:
            sockets = None if placement.is_alone else _listen(parts, succession)
            server = await _begin(parts, sockets, succession, stack)
        parts.storage.serve()
        try:
            yield server
        finally:
            await server.stop(settings.shutdown_timeout / 1000)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a server that does not serve yet."""

    settings: Settings
    placement: Placement
    addresses: ListenAddresses
    directory: DataDirectory
    storage: Storage
    ticker: Ticker
    heads: Heads
    writer: JournalWriter | None
    endpoint: Endpoint
    administration: Administration
    tasks: Tasks
    forwarding: "Forwarding | None"
    sharding: "Sharding | None"
    login: "InstalledLogin | None"
    # Those at which it has answered already, while it waited for another server.
    sockets: ListeningSockets | None


async def _assemble(
    settings: Settings, succession: Succession, placement: Placement, stack: AsyncExitStack
) -> _Parts:
    """Make everything that a server consists of. A successor has not opened the store yet."""
    addresses = await find_addresses(settings, placement.number)
    shared = succession.descriptors.get(LOCK)
    placement.make_parent()
    control = settings.data / CONTROL_FILE if placement.leads else None
    others = [placement.data_of(shard) for shard in placement.others]
    directory = await claimed(placement.data, shared, control, stack, others)
    succession.keep(LOCK, directory.lock)
    tokens = opened_tokens(settings.data)
    waiting = Waiting(settings, addresses, placement, succession)
    opening = open_storage(
        *(settings, directory, stack, _stop_at_once, placement),
        is_successor=succession.is_successor,
        on_waiting=waiting.begin,
        on_lost=succession.lost,
        claimed=succession.claimed,
    )
    storage = await (waiting.until(opening) if may_wait(settings, succession) else opening)
    ticker = Ticker(heads := Heads(settings.hsts_s), storage.right)
    clock = ticker.clock
    tasks = Tasks(clock)
    stack.push_async_callback(tasks.close)
    writer = make_journal(settings, placement, storage.store, clock())
    if not succession.is_successor:
        # Before anything else happens.
        await begin_run(writer, storage.store, clock(), goes_on=storage.goes_on)
    unread = UnreadRequests()
    forwarding = forwarding_of(settings, placement, storage, clock, stack)
    node = storage.node(settings.node)
    client_ids = _client_ids(storage, forwarding)
    shard = None
    if forwarding is not None:
        from holdfast.compose.sharding import ShardParts

        shard = ShardParts(
            *(placement, forwarding.shards, storage),
            stamp=node.stamp,
            came_early=(writer or NO_JOURNAL).came_early,
            bucket_of=client_ids.bucket_of,
            core_clock=clock,
            reaches=forwarding.reaches,
        )
    bayeux = assemble(
        settings,
        shards=1 if forwarding is None else forwarding.shards.count,
        node=node,
        store=storage.store,
        epoch=seed_of(storage.store.epoch),
        journal=writer or NO_JOURNAL,
        client_ids=client_ids,
        random=random.random,
        on_ready=ticker.end_turn_soon,
        run_later=tasks,
        is_turn_over=ticker.turn_budget.is_over,
        unread_since=unread.since,
        role_of=partial(role_of, tokens),
        neighbours=None if shard is None else shard.neighbours,
    )
    server = ForExtensions(bayeux, clock)
    login = _login(*(settings, server, bayeux.state, stack, tokens, storage.store.deployment.key))
    _install_extensions(server, settings, placement, bayeux, stack)

    def door(own: RequestScheduler) -> "RequestSink":
        if forwarding is None:
            return own
        return forwarding.door(own, bayeux, login)

    endpoint = make_endpoint(
        *(settings, bayeux, ticker, unread, storage.right, door),
        None if forwarding is None else forwarding.host_cookie,
    )
    administration = make_administration(
        *(settings, stack, endpoint, server, storage, tokens, login, placement),
        homes=None if shard is None else shard.shards,
        forwarding=forwarding,
        ends=lambda: succession.ends,
        own=own_figures(endpoint, ticker, storage.link),
    )
    sharding = None
    if shard is not None:
        from holdfast.compose.sharding import Sharding

        sharding = Sharding(shard, placement, settings, bayeux=bayeux, storage=storage)
    ticker.collector.begin()
    return _Parts(
        *(settings, placement, addresses, directory, storage, ticker, heads, writer, endpoint),
        *(administration, tasks, forwarding, sharding, login, waiting.sockets),
    )


async def _succeed(parts: _Parts, succession: Succession, stack: AsyncExitStack) -> RunningServer:
    """Try what may fail while the other server still serves; then take its place."""
    storage = parts.storage
    sockets = _listen(parts, succession)
    await storage.check()
    await succession.prepared()
    # From here on, the clients of both servers wait.
    async with storage.monitor.depended_on():
        await storage.open()
        state = parts.endpoint.bayeux.state
        state.histories.start_at(state.node.stamp())
        now = parts.ticker.clock()
        await begin_run(parts.writer, storage.store, now, goes_on=storage.goes_on)
        return await _begin(parts, sockets, succession, stack)


def _listen(parts: _Parts, succession: Succession) -> ListeningSockets:
    """Open what clients and other shards connect to; the first shard has the others started."""
    sockets = parts.sockets or listen(parts.addresses, succession)
    if parts.forwarding is not None:
        parts.forwarding.listen(succession)
    placement = parts.placement
    if placement.leads:
        if parts.sockets is None:
            listen_for_commands(parts.settings.data, succession)
        if not placement.is_alone:
            # If this one dies before it serves, the next one inherits what it has given here.
            succession.listening(placement.count, str(placement.links))
    return sockets


async def _begin(
    parts: _Parts,
    sockets: ListeningSockets | None,
    succession: Succession,
    stack: AsyncExitStack,
) -> RunningServer:
    """Restore what is stored, and serve."""
    settings, storage, ticker = parts.settings, parts.storage, parts.ticker
    endpoint, administration = parts.endpoint, parts.administration
    bayeux, clock = endpoint.bayeux, ticker.clock
    if parts.sharding is not None:
        await parts.sharding.begin()
    await storage.load(bayeux, clock)
    run = begin_journal(
        *(parts.writer, _books(bayeux.state), storage.store, settings, stack, clock)
    )
    websockets = WebSocketFrontEnd(endpoint)
    watch = storage.watch(parts.directory, stack)

    warn(settings, parts.addresses)
    applications = ServedApplications(
        *(endpoint, websockets, parts.heads),
        readiness_of(bayeux, watch, storage, parts.forwarding, parts.sharding),
        administration,
        parts.forwarding,
        administration.own,
    )
    ticker.collector.exempt()
    if sockets is None:
        sockets = _listen(parts, succession)
    # A listening socket that stays open without being read would keep clients waiting.
    succession.close_rest()
    if not parts.placement.is_alone:
        await succession.opened()
    # Until now the start could fail; then the next one finds what this one found.
    await storage.remove_given()
    # Messages expire with the ticks, and the store forgets them.
    _start(ticker, bayeux, storage, stack)
    if parts.sharding is not None:
        stack.push_async_callback(parts.sharding.close)
        await parts.sharding.serve()
    await _open_backend(parts, sockets, stack)
    if parts.forwarding is not None:
        if parts.sharding is not None:
            parts.sharding.join(parts.forwarding)
        await parts.forwarding.open(endpoint, stack)
    listeners, url = await open_listeners(settings, parts.addresses, sockets, applications, stack)
    if parts.forwarding is not None:
        await parts.forwarding.share(listeners[MAIN], MAIN, websockets, endpoint, stack)
    _adopt(succession, listeners, stack)
    # Not before this process serves: the former one may go on, and knows nothing of this one's.
    administration.replays.resume_soon()
    run_until_closed(stack, administration.figures.run())
    return RunningServer(
        *(settings, url, bayeux, storage, ticker, run, administration.replays),
        *(parts.heads, websockets, listeners[MAIN], Leaving(endpoint, websockets, listeners)),
        *(parts.tasks, succession, administration.figures, administration.read_again),
        forwarding=parts.forwarding,
        sharding=parts.sharding,
        webhooks=await _open_webhooks(parts, sockets, stack),
    )


async def _open_backend(parts: _Parts, sockets: ListeningSockets, stack: AsyncExitStack) -> None:
    """Begin to ask the backend, if there is one."""
    if parts.login is not None:
        ports = sockets.ports(parts.settings.own_port, parts.placement.count)
        await parts.login.open(parts.settings, ports, stack)


async def _open_webhooks(
    parts: _Parts, sockets: ListeningSockets, stack: AsyncExitStack
) -> "Webhooks | None":
    """Begin to call the webhooks, if there are any."""
    if not parts.settings.webhooks:
        return None
    from holdfast.compose.webhooks import open_webhooks

    ports = sockets.ports(parts.settings.own_port, parts.placement.count)
    former = None if parts.storage.goes_on else parts.administration.letters
    return await open_webhooks(parts.settings, parts.endpoint, ports, stack, former)


def _adopt(
    succession: Succession, listeners: "Mapping[str, Listener]", stack: AsyncExitStack
) -> None:
    """Serve the connections of the running server, if there is one."""
    if succession.door is not None:
        link = socket.socket(fileno=succession.door)
        adopting: asyncio.Task[int] = asyncio.create_task(adopt(link, listeners))
        stack.push_async_callback(cancel, adopting)


def _login(
    settings: Settings,
    server: ForExtensions,
    state: ServerState,
    stack: AsyncExitStack,
    tokens: Tokens,
    key: bytes,
) -> "InstalledLogin | None":
    """Install the login, if one is configured; only then its cryptography is imported."""
    if not settings.requires_login:
        return None
    from holdfast.compose.login import install_login

    return install_login(settings, server, state, stack, tokens, key)


def _start(ticker: Ticker, bayeux: Bayeux, storage: Storage, stack: AsyncExitStack) -> None:
    """Start the ticker."""
    ticker.start(bayeux)
    stack.callback(ticker.stop)
    storage.store.flush_by(ticker.end_turn_soon)


def _client_ids(storage: Storage, forwarding: "Forwarding | None") -> ClientIds:
    key = storage.store.deployment.key
    if forwarding is None:
        return ClientIds(key, secrets.token_bytes)
    return ClientIds(key, secrets.token_bytes, buckets=forwarding.buckets)


def _books(state: ServerState) -> Books:
    return Books(state.counters, state.sessions, state.waiting_places)


def _install_extensions(
    server: ServerApi,
    settings: Settings,
    placement: Placement,
    bayeux: Bayeux,
    stack: AsyncExitStack,
) -> None:
    if settings.delivery:
        server.extend(DeliveryWire(server, docs_url(settings)))
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
    if settings.otlp is not None:
        # Most servers do without OpenTelemetry.
        from holdfast.compose.tracing import open_tracing

        instance = placement.node(settings.node)
        open_tracing(settings.otlp, instance, server, bayeux, stack)
    _install_own(server, settings)


def _install_own(server: ServerApi, settings: Settings) -> None:
    """Install the operators' own extensions."""
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


def _stop_at_once() -> None:
    """Stop this process: another one owns the store and its sessions now."""
    os.kill(os.getpid(), signal.SIGTERM)
