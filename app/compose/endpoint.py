"""Makes the Bayeux server as transports see it, and the host names by which clients reach it."""

from typing import TYPE_CHECKING

from holdfast.bayeux.server import Bayeux
from holdfast.compose.manual import errors_for_clients
from holdfast.settings import Settings
from holdfast.store.links.link import StoreLink
from holdfast.web.admin.figure_readings import OwnFigures
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.http.cookies import BrowserCookie
from holdfast.web.http.hosts import Hosts, name_of
from holdfast.web.http.origins import Origins
from holdfast.web.http.peers import Peers
from holdfast.web.scheduling.intake import Intake, UnreadRequests
from holdfast.web.scheduling.request_scheduler import RequestScheduler
from holdfast.web.scheduling.speaking import SpeakingRight
from holdfast.web.ticker import Ticker

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.web.http.host_cookie import HostCookie
    from holdfast.web.scheduling.request_sink import RequestSink

# As an origin or a host name: all of them.
_ANY = "*"


def make_endpoint(
    settings: Settings,
    bayeux: Bayeux,
    ticker: Ticker,
    unread: UnreadRequests,
    right: SpeakingRight,
    door: "Callable[[RequestScheduler], RequestSink]",
    host_cookie: "HostCookie | None",
) -> Endpoint:
    intake, cookie = Intake(settings.max_unfinished_bytes), BrowserCookie(settings)
    scheduler = RequestScheduler(
        *(bayeux, ticker.clock, intake, ticker.turn_budget, unread, right, cookie.name)
    )
    return Endpoint(
        bayeux,
        bayeux.state.notices,
        bayeux.state.budgets,
        settings,
        cookie,
        Origins(settings.allow_origin),
        _main_hosts(settings),
        Peers(
            settings.trusted_proxies,
            settings.forwarded_header,
            shows_headers=bool(settings.extension) or settings.requires_login,
        ),
        ticker.clock,
        ticker.coalescer,
        ticker.turn_budget,
        intake,
        scheduler,
        door(scheduler),
        right,
        host_cookie=host_cookie,
        errors=errors_for_clients(settings),
    )


def own_figures(endpoint: Endpoint, ticker: Ticker, link: StoreLink) -> OwnFigures:
    """Return what this process measures of itself, outside the core."""

    def traffic() -> tuple[int, int]:
        return endpoint.scheduler.received, endpoint.coalescer.sent

    return OwnFigures(ticker.turn_budget.times, link.times.answers, traffic)


def hosts_of(settings: Settings) -> Hosts:
    """The host names by which this server is reached over a network."""
    admin, _, _ = (settings.admin or "").rpartition(":")
    places = [settings.host, admin, *settings.allow_origin]
    names = [name for place in places if place not in ("", _ANY) and (name := name_of(place))]
    return Hosts([*settings.host_name, *names])


def _main_hosts(settings: Settings) -> Hosts:
    """Return all hosts for a Unix socket, unless names are set: its proxy checks names."""
    if settings.unix is not None and not settings.host_name:
        return Hosts([_ANY])
    return hosts_of(settings)
