"""Connections of clients are the server's: its supervisor, which outlives it, has none of them."""

import os
import socket
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.clients.deployment import deployed


def test_the_supervisor_has_no_connection_of_a_client(tmp_path: Path) -> None:
    with deployed(tmp_path, {}) as deployment:
        address = urlsplit(deployment.url)
        with closing(HTTPConnection(address.netloc, timeout=60)) as client:
            for restart in (None, deployment.restart):
                if restart is not None:
                    restart()
                client.request("GET", "/healthz")
                assert client.getresponse().read() == b"ok\n"
                connection = server_end_of(client.sock)
                importers = children_of(deployment.pid)
                servers = [each for importer in importers for each in children_of(importer)]
                assert any(connection in sockets_of(each) for each in servers)
                assert not any(connection in sockets_of(each) for each in importers)
                assert connection not in sockets_of(deployment.pid)


def children_of(pid: int) -> list[int]:
    # A former importer may end meanwhile.
    with suppress(OSError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(each) for each in found.split()]
    return []


def server_end_of(client: socket.socket) -> str:
    """The number of the socket at the other end of a connection on this machine."""
    client_port, server_port = (
        f":{each[1]:04X}" for each in (client.getsockname(), client.getpeername())
    )
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, ours, theirs, *rest = line.split()
        if ours.endswith(server_port) and theirs.endswith(client_port):
            return rest[6]
    raise AssertionError("the connection has ended")


def sockets_of(pid: int) -> set[str]:
    """The numbers of the sockets that a process has."""
    links = []
    with suppress(OSError):
        links = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]
    return {each[len("socket:[") : -1] for each in links if each.startswith("socket:[")}
