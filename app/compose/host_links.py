"""The links between a worker and the shards of other hosts, in both directions."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from holdfast.bayeux.limits.budgets import Budgets
from holdfast.compose.host_overview import HostOverview
from holdfast.compose.link_certificates import LinkCertificates
from holdfast.hosts.doors import parts_of
from holdfast.settings import Settings
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.hello import Hello
from holdfast.web.forwarding.link_server import LinkServer
from holdfast.web.host_links.far_keeper import FarKeeper, Hosts
from holdfast.web.host_links.receiver import Receiver
from holdfast.web.host_links.stickiness import telling
from holdfast.web.host_links.tls_connection import plain
from holdfast.web.host_links.whereabouts import Whereabouts
from holdfast.web.http.host_cookie import HostCookie

# How often it is looked which hosts live.
_LOOK_S: Final = 1.0


class HostLinks:
    """Makes them. Raises `CannotStart` if certificates cannot be read."""

    def __init__(
        self, settings: Settings, whereabouts: Whereabouts, overview: HostOverview
    ) -> None:
        # For operators.
        self.overview = overview
        self.own = settings.own_host or ""
        # Tells clients the hosts of their sessions.
        self.cookie = HostCookie(settings, self.own)
        self._keepers: dict[int, FarKeeper] = {}
        self._tls = LinkCertificates(settings, self.own)
        addresses = addresses_of(settings)
        self._others = [name for name in addresses if name != self.own]
        self._hosts = Hosts(self.own, addresses, lambda: self._tls.now.client, whereabouts)

    def keeper(self, shard: int, path: Path, hello: Hello, far: FarShard) -> FarKeeper:
        """Return what keeps a link to another shard, which has this path if it is here."""
        keeper = self._keepers[shard] = FarKeeper(shard, path, hello, far, self._hosts)
        return keeper

    def far_shard(self, shard: int, clock: Callable[[], float]) -> FarShard:
        """Return what forwards to another shard."""
        far = FarShard(shard, clock)
        far.on_answer = telling(self.cookie, lambda: self._keepers[shard].host)
        return far

    async def divide(self, budgets: Budgets, reaches: Callable[[int], bool]) -> None:
        """Divide the budgets of an address by the doors that live, until the task is cancelled."""
        while True:
            reached = {shard: host for shard, host in self.of_shards.items() if reaches(shard)}
            budgets.doors = parts_of(self.own, reached)
            await asyncio.sleep(_LOOK_S)

    @property
    def of_shards(self) -> dict[int, str]:
        """The host that had each other shard last, as far as it is known."""
        return {shard: each.host for shard, each in self._keepers.items() if each.host}

    def receiver(self, server: LinkServer, hello: Hello, listening: socket.socket) -> Receiver:
        """Take connections of other hosts that come to this socket."""
        receiver = Receiver(server, hello, self._others, lambda: self._tls.now.server)
        receiver.open(listening)
        return receiver


def addresses_of(settings: Settings) -> dict[str, tuple[str, int]]:
    """Return where each host accepts links, by its name in the settings."""
    found = {}
    for each in settings.hosts:
        name, _, port = each.rpartition(":")
        found[plain(name)] = plain(name), int(port)
    return found
