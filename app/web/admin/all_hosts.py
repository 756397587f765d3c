"""The resource of the machines that have the shards of one deployment."""

from collections.abc import Collection
from typing import Annotated, Protocol

from pydantic import Field

from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.faults import UNKNOWN, RequestFailed
from holdfast.web.admin.host_views import Hosts
from holdfast.web.admin.route import route

HostName = Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9.:\-]+$")]


class HostsOfAll(Protocol):
    """What the stores say of all hosts. All methods raise `StoreUnavailable`."""

    @property
    def names(self) -> Collection[str]:
        """All names in the settings."""
        ...

    async def read(self) -> Hosts:
        """Return all hosts, which takes seconds if one is away."""
        ...

    async def drain(self, host: str, who: str, now_ms: int, /) -> None:
        """Let a host give its shards away for some minutes."""
        ...

    async def uncordon(self, host: str, /) -> None:
        """Let a host have shards again."""
        ...


class HostResource:
    """Answers requests about hosts.

    Args:
        hosts: None if the settings have no list of hosts.
    """

    def __init__(self, server: RunningServer, hosts: HostsOfAll | None) -> None:
        self._server = server
        self._hosts = hosts

    @route("GET", "/hosts")
    async def hosts(self) -> Hosts:
        """Show the machines of this deployment, which shards each has, and what moves."""
        return await self._known().read()

    @route("PUT", "/hosts/{host}/drain")
    async def drain_host(self, host: HostName, who: str) -> None:
        """Let a machine give its shards to the others, and take none for ten minutes."""
        hosts = self._known(host)
        async with self._server.change(who, "host.drain", host):
            await hosts.drain(host, who, self._server.life.state.node.now_ms())

    @route("DELETE", "/hosts/{host}/drain")
    async def uncordon_host(self, host: HostName, who: str) -> None:
        """Let a machine have shards again."""
        hosts = self._known(host)
        async with self._server.change(who, "host.uncordon", host):
            await hosts.uncordon(host)

    def _known(self, host: str | None = None) -> HostsOfAll:
        if self._hosts is None:
            raise RequestFailed(UNKNOWN, "the settings of this server have no list of hosts")
        if host is not None and host not in self._hosts.names:
            raise RequestFailed(UNKNOWN, f"{host} is none of the hosts in the settings")
        return self._hosts
