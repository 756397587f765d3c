"""Operators ask a running server about the hosts of its deployment."""

from holdfast.web.admin.all_hosts import HostResource
from holdfast.web.admin.faults import UNKNOWN
from holdfast.web.admin.host_views import Hosts
from tests.web.fake_operations import some_hosts
from tests.web.live_server import LiveServer, refused_with


class ThreeHosts:
    """Remembers what operators want."""

    names = ("a.example", "b.example", "c.example")

    def __init__(self) -> None:
        self.wishes: dict[str, str] = {}

    async def read(self) -> Hosts:
        return some_hosts()

    async def drain(self, host: str, who: str, now_ms: int) -> None:
        self.wishes[host] = who

    async def uncordon(self, host: str) -> None:
        self.wishes.pop(host, None)


async def test_without_a_list_of_hosts_there_are_none(server: LiveServer) -> None:
    with refused_with(UNKNOWN):
        await server.api.hosts.hosts()
    with refused_with(UNKNOWN):
        await server.api.hosts.drain_host("a.example", "operator")


async def test_drains_are_wished_for_and_audited(server: LiveServer) -> None:
    three = ThreeHosts()
    resource = HostResource(server.running, three)
    await resource.drain_host("a.example", "operator")
    assert three.wishes == {"a.example": "operator"}
    await resource.uncordon_host("a.example", "operator")
    assert three.wishes == {}
    with refused_with(UNKNOWN):
        await resource.drain_host("z.example", "operator")
    audited = [(each.action, each.target, each.outcome) for each in await server.audited()]
    assert audited == [("host.uncordon", "a.example", "ok"), ("host.drain", "a.example", "ok")]
