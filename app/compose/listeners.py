"""Opens the listeners of this server."""

import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.bayeux.server import Bayeux
from holdfast.compose.administration import Administered
from holdfast.compose.connection_limits import ConnectionLimits, make_limits
from holdfast.compose.directory_watch import DirectoryWatch
from holdfast.compose.endpoint import hosts_of
from holdfast.compose.listen_addresses import ListenAddresses, log_where_admin_is
from holdfast.compose.listening import ADMIN, MAIN, ListeningSockets
from holdfast.compose.manual import PAGES, errors_page, served_docs
from holdfast.compose.storage import Storage
from holdfast.settings import Settings
from holdfast.web.admin.figure_readings import OwnFigures
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.answering.heads import Heads
from holdfast.web.application import (
    ONE_SHARD,
    Readiness,
    add_metrics_of_operators,
    make_administration_apart,
    make_application,
)
from holdfast.web.front.listener import Listener
from holdfast.web.http import aiohttp_parts
from holdfast.web.prometheus.metrics import Metrics, MetricsPage
from holdfast.web.site.static_files import read_files
from holdfast.web.streams.reading_routes import Reading
from holdfast.web.websockets.websocket import WebSocketFrontEnd

if TYPE_CHECKING:
    from holdfast.compose.forwarding import Forwarding
    from holdfast.compose.sharding import Sharding
    from holdfast.web.streams.homes_asked import Asking

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServedApplications:
    """The parts that the listeners' applications are made of."""

    endpoint: Endpoint
    websockets: WebSocketFrontEnd
    heads: Heads
    readiness: Readiness
    administration: Administered
    # None if there is only one shard.
    forwarding: "Forwarding | None" = None
    own: OwnFigures = field(default_factory=OwnFigures)


def readiness_of(
    bayeux: Bayeux,
    watch: DirectoryWatch,
    storage: Storage,
    forwarding: "Forwarding | None",
    sharding: "Sharding | None",
) -> Readiness:
    """Return what says whether clients should come here.

    That another worker is away is no reason against it: a proxy would turn all clients away.
    """

    async def missing() -> str | None:
        if bayeux.state.is_stopping:
            return "stopping"
        if found := watch.complaint() or storage.complaint:
            return found
        if sharding is not None and (found := sharding.complaint):
            return found
        return None if forwarding is None else await forwarding.draining()

    async def readiness(of_all: bool) -> tuple[str | None, str]:
        replicas = "" if storage.replicas is None else storage.replicas.complaint
        away = forwarding.absences() if of_all and forwarding is not None else ()
        return await missing(), "\n".join(each for each in (replicas, *away) if each)

    return readiness


def warn(settings: Settings, addresses: ListenAddresses) -> None:
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


async def open_listeners(
    settings: Settings,
    addresses: ListenAddresses,
    sockets: ListeningSockets,
    parts: ServedApplications,
    stack: AsyncExitStack,
) -> tuple[dict[str, Listener], str]:
    """Open the listeners; returns them by name, and the URL. The stack closes the operators'."""
    endpoint, timeout_s = parts.endpoint, settings.shutdown_timeout / 1000
    admin = parts.administration.application
    limits = make_limits(endpoint.notices, has_admin_apart=addresses.admin is not None)
    files = read_files(PAGES)
    listeners: dict[str, Listener] = {}
    metrics = await _metrics(parts, limits, stack)
    add_metrics_of_operators(admin, metrics)
    if addresses.admin is not None:
        application = make_administration_apart(
            *(endpoint, parts.readiness, files, admin), hosts_of(settings)
        )
        apart = Listener(application, addresses.admin, limits.admin, shutdown_timeout_s=timeout_s)
        listeners[ADMIN] = apart
        stack.push_async_callback(apart.close)
        admin_url = await apart.open(sockets.admin, endpoint, parts.heads, has_bayeux=False)
        log_where_admin_is(addresses.admin, admin_url, settings.data)
    forwarding = parts.forwarding
    application = make_application(
        *(endpoint, parts.websockets, metrics, parts.readiness, files),
        admin if addresses.has_admin_on_main else None,
        chat=settings.chat,
        login=_sign_in(settings),
        shards=ONE_SHARD if forwarding is None else forwarding.shards.to_json(),
        divider=None if forwarding is None else forwarding.divider,
        reading=_reading(parts) if settings.streams else None,
        docs=served_docs(settings),
    )
    main = Listener(application, addresses.main, limits.main, shutdown_timeout_s=timeout_s)
    listeners[MAIN] = main
    url = await main.open(sockets.main, endpoint, parts.heads)
    endpoint.notices.errors = errors_page(settings, url)
    return listeners, url


async def _metrics(
    parts: ServedApplications, limits: ConnectionLimits, stack: AsyncExitStack
) -> MetricsPage:
    """Return the metrics of this worker, or of all; the stack ends it."""
    endpoint, forwarding, joint = parts.endpoint, parts.forwarding, parts.administration.joint
    metrics = Metrics(
        *(endpoint.bayeux, limits.named(), parts.administration.alerts, endpoint.right),
        None if forwarding is None else lambda: forwarding.figures,
        parts.own,
    )
    return metrics if joint is None else await joint.open(metrics, stack)


def _reading(parts: ServedApplications) -> Reading:
    """Return what reads histories without a session, here or at the homes of channels."""
    endpoint, joint = parts.endpoint, parts.administration.joint

    def asking() -> "Asking":
        if joint is not None:
            return joint.streams.asking
        from holdfast.web.streams.homes_asked import asking_here

        return asking_here(endpoint.bayeux, endpoint.scheduler.next_reader)

    return Reading(endpoint, asking, parts.administration.logins)


def _sign_in(settings: Settings) -> list[str]:
    """Return the parts of the form by which users of the chat sign in."""
    by_request = settings.login_cookie or settings.login_header or settings.login_certificate
    parts = {
        "login": settings.requires_login,
        "password": settings.login_passwords is not None,
        "token": settings.takes_tokens,
        "request": bool(by_request),
    }
    return [part for part, is_offered in parts.items() if is_offered]
