"""The only place that names concrete classes: settings in, a running server out."""

import asyncio
import fcntl
import gc
import importlib
import logging
import os
import random
import secrets
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import app
from app.bayeux.codec import RequestLimits
from app.bayeux.options import ChannelRule, Options
from app.bayeux.server import Bayeux
from app.delivery.channels import ChannelLimits
from app.delivery.queue import QueueLimits
from app.settings import ChannelSettings, Settings
from app.store.connection import Store
from app.web import fast_lane
from app.web.application import make_application
from app.web.clockwork import Clockwork
from app.web.cookies import BrowserCookie
from app.web.endpoint import Endpoint, WebOptions
from app.web.heads import Heads
from app.web.intake import Intake
from app.web.listener import Address, Listener
from app.web.metrics import Metrics
from app.web.origins import Origins
from app.web.tasks import Tasks
from app.web.websocket import WebSocketDoor
from extensions.ack import Ack
from extensions.activity import Activity
from extensions.timestamp import Timestamp
from extensions.timesync import TimeSync

log = logging.getLogger(__name__)


class CannotStart(Exception):
    """The server cannot start; the text says why and what to do."""


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """A running server; its URL while it runs, an orderly stop afterwards."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        stack.enter_context(_own_directory(settings.data))
        store = await _open_store(settings, stack)
        heads, tasks = Heads(), Tasks()
        stack.push_async_callback(tasks.close)
        clockwork = Clockwork(heads)
        bayeux = Bayeux(
            options_of(settings),
            new_id=_identifiers().__next__,
            random=random.random,
            on_ready=clockwork.on_ready,
            run_later=tasks,
        )
        _install_extensions(bayeux, settings)
        intake = Intake(settings.max_unfinished_bytes)
        endpoint = Endpoint(bayeux, _web_options(settings), loop.time, intake)
        door = WebSocketDoor(endpoint)

        async def readiness() -> str | None:
            if bayeux.is_stopping:
                return "stopping"
            return None if store is None or await store.is_there() else "redis cannot be reached"

        pages = Path(app.__file__).parents[1] / "static"
        application = make_application(endpoint, door, Metrics(bayeux), readiness, pages)
        timeout_s = settings.shutdown_timeout / 1000
        listener = Listener(application, _address(settings), shutdown_timeout_s=timeout_s)
        clockwork.start(bayeux)
        stack.callback(clockwork.stop)
        url = await _listen(listener, endpoint, heads, settings)
        gc_for_a_server()
        try:
            yield url
        finally:
            listener.stop_accepting()
            bayeux.stop(loop.time())
            # What was said leaves first; then nobody needs to wait for it while closing.
            await _within(timeout_s / 2, listener.drain())
            await _within(timeout_s / 2, _close(door, listener))


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


def options_of(settings: Settings) -> Options:
    """The core's options; it counts in seconds."""
    return Options(
        timeout_s=settings.timeout / 1000,
        interval_s=settings.interval / 1000,
        max_interval_s=settings.max_interval / 1000,
        meta_connect_deliver_only=settings.meta_connect_deliver_only,
        handshake_reconnect=settings.handshake_reconnect,
        allow_message_delivery_during_handshake=settings.allow_message_delivery_during_handshake,
        broadcast_to_publisher=settings.broadcast_to_publisher,
        trust_client_session=settings.trust_client_session,
        max_sessions_per_browser=settings.max_sessions_per_browser,
        multi_session_interval_s=settings.multi_session_interval / 1000,
        ws_require_handshake_per_connection=settings.ws_require_handshake_per_connection,
        max_sessions=settings.max_sessions,
        max_subscriptions=settings.max_subscriptions,
        max_message_size=settings.max_message_size,
        handshake_rate=float(settings.handshake_rate),
        connection_types=tuple(settings.transports),
        channels={
            pattern: _rule(rule, settings.max_lazy_timeout)
            for pattern, rule in settings.channels.items()
        },
        request_limits=RequestLimits(
            bytes=settings.max_request_size,
            messages=settings.max_batch,
            depth=settings.max_depth,
        ),
        queue_limits=QueueLimits(entries=settings.max_queue, bytes=settings.max_queue_bytes),
        channel_limits=ChannelLimits(
            length=settings.max_channel_length, segments=settings.max_channel_segments
        ),
    )


def _rule(rule: ChannelSettings, max_lazy_timeout: int) -> ChannelRule:
    lazy_timeout_s = None
    if rule.lazy or rule.lazy_timeout is not None:
        timeout = max_lazy_timeout if rule.lazy_timeout is None else rule.lazy_timeout
        lazy_timeout_s = timeout / 1000
    return ChannelRule(lazy_timeout_s, rule.broadcast_to_publisher)


def _web_options(settings: Settings) -> WebOptions:
    return WebOptions(
        paths=tuple(settings.paths),
        transports=frozenset(settings.transports),
        fast_lane=settings.fast_lane,
        max_request_size=settings.max_request_size,
        request_timeout_s=settings.request_timeout / 1000,
        write_timeout_s=settings.write_timeout / 1000,
        superseded_status=settings.duplicate_meta_connect_http_response_code,
        callback_parameter=settings.callback_parameter,
        callback_max_length=settings.callback_parameter_max_length,
        ws_messages_per_frame=settings.ws_messages_per_frame,
        ws_idle_timeout_s=settings.ws_idle_timeout / 1000,
        ws_protocol=settings.ws_protocol,
        cookie=BrowserCookie(
            name=settings.browser_cookie_name,
            domain=settings.browser_cookie_domain,
            path=settings.browser_cookie_path,
            max_age=settings.browser_cookie_max_age,
            secure=settings.browser_cookie_secure,
            http_only=settings.browser_cookie_http_only,
            same_site=settings.browser_cookie_same_site,
            partitioned=settings.browser_cookie_partitioned,
        ),
        origins=Origins(tuple(settings.allow_origin)),
    )


def _address(settings: Settings) -> Address:
    tls = None
    if settings.tls_cert is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            tls.load_cert_chain(settings.tls_cert, settings.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise CannotStart(f"tls_cert, tls_key: {error}") from error
    return Address(settings.host, settings.port, settings.unix, tls)


def _install_extensions(bayeux: Bayeux, settings: Settings) -> None:
    if settings.ack:
        announces_batch = settings.allow_message_delivery_during_handshake
        bayeux.extend(Ack(announces_batch=announces_batch))
    if settings.timesync:
        bayeux.extend(TimeSync(_wall_ms))
    if settings.timestamp:
        bayeux.extend(Timestamp(_wall_ms))
    if settings.max_inactivity:
        bayeux.extend(Activity(bayeux, settings.max_inactivity / 1000))
    for name in settings.extension:
        try:
            _load(name)(bayeux)
        except Exception as error:
            raise CannotStart(f"extension {name}: {type(error).__name__}: {error}") from error


def _load(name: str) -> Callable[[Bayeux], None]:
    module, _, factory = name.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        # The operator's modules are where the server is started; an installed command forgets it.
        sys.path.insert(0, os.getcwd())
    loaded: Callable[[Bayeux], None] = getattr(importlib.import_module(module), factory)
    return loaded


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


async def _open_store(settings: Settings, stack: AsyncExitStack) -> Store | None:
    if settings.redis is None:
        return None
    store = Store(settings.redis)
    stack.push_async_callback(store.close)
    await store.open()
    return store


async def _listen(listener: Listener, endpoint: Endpoint, heads: Heads, settings: Settings) -> str:
    if not fast_lane.is_supported():
        log.warning(
            "fast_lane: not for this version of aiohttp, everything takes the ordinary door"
        )
    try:
        return await listener.open(endpoint, heads)
    except OSError as error:
        place = settings.unix or f"{settings.host}:{settings.port}"
        raise CannotStart(f"cannot listen on {place}: {error.strerror or error}") from error


@contextmanager
def _own_directory(path: Path) -> Iterator[None]:
    """The data directory, for this process alone."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotStart(f"data {path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise CannotStart(f"data {path}: another server uses this directory") from None
    try:
        yield
    finally:
        os.close(lock)
