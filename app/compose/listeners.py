"""Opens the listeners of this server."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import holdfast
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.connection_limits import make_rooms
from holdfast.compose.listen_addresses import ListenAddresses, say_where_admin_is
from holdfast.compose.options import hosts_of
from holdfast.settings import Settings
from holdfast.web.application import Readiness, make_administration_apart, make_application
from holdfast.web.endpoint import Endpoint
from holdfast.web.heads import Heads
from holdfast.web.listener import Listener
from holdfast.web.metrics import Metrics
from holdfast.web.static_files import read_files
from holdfast.web.websocket import WebSocketFrontEnd

if TYPE_CHECKING:
    from aiohttp import web

_PAGES = Path(holdfast.__file__).parent / "static"


@dataclass(frozen=True, slots=True)
class ServedApplications:
    """The applications of the listeners."""

    endpoint: Endpoint
    door: WebSocketFrontEnd
    heads: Heads
    readiness: Readiness
    admin: "web.Application"


async def open_listeners(
    settings: Settings, places: ListenAddresses, offer: ServedApplications, stack: AsyncExitStack
) -> tuple[Listener, str]:
    """Open the listeners; returns the main one and its URL. The stack closes the operators'."""
    endpoint, timeout_s = offer.endpoint, settings.shutdown_timeout / 1000
    rooms = make_rooms(endpoint.bayeux.state.notices, has_admin_apart=places.admin is not None)
    files = read_files(_PAGES)
    if places.admin is not None:
        served = make_administration_apart(
            *(endpoint, offer.readiness, files, offer.admin), hosts_of(settings)
        )
        apart = Listener(served, places.admin, rooms.admin, shutdown_timeout_s=timeout_s)
        stack.push_async_callback(apart.close)
        with _naming(f"admin: cannot listen on {settings.admin}"):
            admin_url = await apart.open(endpoint, offer.heads, has_bayeux=False)
        say_where_admin_is(places.admin, admin_url, settings.data)
    served = make_application(
        *(endpoint, offer.door, Metrics(endpoint.bayeux, rooms.named()), offer.readiness, files),
        offer.admin if places.has_admin_on_main else None,
        chat=settings.chat,
        login=_sign_in(settings),
    )
    main = Listener(served, places.main, rooms.main, shutdown_timeout_s=timeout_s)
    with _naming(f"cannot listen on {settings.unix or f'{settings.host}:{settings.port}'}"):
        return main, await main.open(endpoint, offer.heads)


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


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Raise `CannotStart` if an address cannot be listened at."""
    try:
        yield
    except OSError as error:
        raise CannotStart(f"{what}: {error.strerror or error}") from error
