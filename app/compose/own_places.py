"""Where this deployment is: its own posts go to none of these places."""

import logging
from collections.abc import Collection

from holdfast.settings import Settings
from holdfast.web.http.addresses import resolve
from holdfast.web.outgoing.allowed_addresses import OwnPlaces, is_here

log = logging.getLogger(__name__)


async def own_places(settings: Settings, ports: Collection[int]) -> OwnPlaces:
    """Return where the store is, and where this deployment listens: at these ports."""
    store = await _places_of_store(settings)
    return OwnPlaces({*ports, *(port for ip, port in store if is_here(ip))}, store)


async def _places_of_store(settings: Settings) -> set[tuple[str, int]]:
    """Return the addresses and ports of the hosts in the store's URL."""
    if settings.redis is None:
        # It listens at a Unix socket.
        return set()
    from holdfast.store.links.url import StoreUrl

    found: set[tuple[str, int]] = set()
    for door in StoreUrl.of(settings.redis).doors:
        if door.path is not None:
            continue
        try:
            found.update((ip, door.port) for ip in await resolve(door.host))
        except OSError as error:
            log.warning("posts of this server could reach the store: %s: %s", door.host, error)
    return found
