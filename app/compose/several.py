"""What servers of several shards need; a server alone imports none of it, or later."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.compose.forwarding import Forwarding
    from holdfast.compose.host_links import HostLinks
    from holdfast.compose.placement import Placement
    from holdfast.compose.storage import Storage
    from holdfast.settings import Settings

_MODULES = (
    "holdfast.compose.workers",
    "holdfast.compose.sharding",
    "holdfast.compose.joint_administration",
    "holdfast.web.admin.handlers",
)


def import_for_several() -> None:
    """Import it all, while no client waits for this process."""
    for each in _MODULES:
        import_module(each)


def forwarding_of(
    settings: "Settings",
    placement: "Placement",
    storage: "Storage",
    clock: Callable[[], float],
    stack: AsyncExitStack,
) -> "Forwarding | None":
    """Return what passes requests on to other shards; None if there are none."""
    if placement.is_alone:
        return None
    from holdfast.cluster.shards import map_of
    from holdfast.compose.forwarding import Forwarding

    shards = map_of(storage.origin.division.shards)
    hosts = host_links(settings, placement, stack)
    return Forwarding(placement, shards, storage.store.deployment.name, clock, hosts)


def host_links(
    settings: "Settings", placement: "Placement", stack: AsyncExitStack
) -> "HostLinks | None":
    """Return what makes links to other hosts; None without a list of hosts."""
    if not placement.host:
        return None
    from holdfast.compose.claim_store import ClaimStore
    from holdfast.compose.host_links import HostLinks
    from holdfast.compose.host_overview import HostOverview

    whereabouts = ClaimStore(settings, placement.count)
    stack.callback(whereabouts.close)
    overview = HostOverview(settings, whereabouts, placement.count)
    return HostLinks(settings, whereabouts, overview)
