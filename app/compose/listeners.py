"""The listeners of this server, and what each of them serves."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import app
from app.compose.cannot_start import CannotStart
from app.compose.options import hosts_of
from app.compose.places import Places, say_where_admin_is
from app.compose.rooms import make_rooms
from app.settings import Settings
from app.web.application import Readiness, make_administration_apart, make_application
from app.web.endpoint import Endpoint
from app.web.heads import Heads
from app.web.listener import Listener
from app.web.metrics import Metrics
from app.web.websocket import WebSocketDoor

if TYPE_CHECKING:
    from aiohttp import web

_PAGES = Path(app.__file__).parents[1] / "static"


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to be served."""

    endpoint: Endpoint
    door: WebSocketDoor
    heads: Heads
    readiness: Readiness
    admin: "web.Application"


async def open_listeners(
    settings: Settings, places: Places, offer: Offer, stack: AsyncExitStack
) -> tuple[Listener, str]:
    """The main listener and its URL; that of operators, if they have one, ends with the stack."""
    endpoint, timeout_s = offer.endpoint, settings.shutdown_timeout / 1000
    rooms = make_rooms(endpoint.bayeux.notices, has_admin_apart=places.admin is not None)
    if places.admin is not None:
        served = make_administration_apart(
            *(endpoint, offer.readiness, _PAGES, offer.admin), hosts_of(settings)
        )
        apart = Listener(served, places.admin, rooms.admin, shutdown_timeout_s=timeout_s)
        stack.push_async_callback(apart.close)
        with _naming(f"admin: cannot listen on {settings.admin}"):
            admin_url = await apart.open(endpoint, offer.heads, has_bayeux=False)
        say_where_admin_is(places.admin, admin_url, settings.data)
    served = make_application(
        *(endpoint, offer.door, Metrics(endpoint.bayeux, rooms.named()), offer.readiness, _PAGES),
        offer.admin if places.has_admin_on_main else None,
        chat=settings.chat,
    )
    main = Listener(served, places.main, rooms.main, shutdown_timeout_s=timeout_s)
    with _naming(f"cannot listen on {settings.unix or f'{settings.host}:{settings.port}'}"):
        return main, await main.open(endpoint, offer.heads)


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """An address that cannot be listened on stops the start."""
    try:
        yield
    except OSError as error:
        raise CannotStart(f"{what}: {error.strerror or error}") from error
