"""A server that ends again and again: clients and probes get an answer in the pauses."""

import os
import re
import signal
import socket
import ssl
import struct
import time
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from holdfast.web.http.addresses import BACKLOG, Address
from holdfast.web.http.origins import Origins
from holdfast.web.standby import StandbyDoor
from tests.clients.deployment import Deployment, deployed
from tests.web.certificates import Authority

# Servers that load it end, as long as there is a file.
DEADLY = """
import os
import signal

def install(server):
    if os.path.exists("deadly"):
        os.kill(os.getpid(), signal.SIGKILL)
"""
LIMIT_S = 60.0
# Of a listening socket in struct tcp_info: how many connections may wait.
MOST_WAITING = int(Path("/proc/sys/net/core/somaxconn").read_text())
WAITING = struct.Struct("28xI")


def children_of(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in found.split()]


def kill_server(deployment: Deployment) -> None:
    [importer] = children_of(deployment.pid)
    [server] = children_of(importer)
    os.kill(server, signal.SIGKILL)


class Answer:
    """What a client or a probe gets."""

    def __init__(
        self, url: str, method: str, path: str, tls: ssl.SSLContext | None, **headers: str
    ) -> None:
        host = urlsplit(url).netloc
        connection = (
            HTTPConnection(host, timeout=LIMIT_S)
            if tls is None
            else HTTPSConnection(host, timeout=LIMIT_S, context=tls)
        )
        with closing(connection):
            connection.request(method, path, "[]" if method == "POST" else None, headers)
            with connection.getresponse() as response:
                self.status = response.status
                self.headers = response.headers
                self.body = response.read()


def is_ready(url: str, tls: ssl.SSLContext | None) -> bool:
    with suppress(ConnectionError, ssl.SSLEOFError):
        # The one that stands in may end with the connection.
        return Answer(url, "GET", "/readyz", tls).status == 200
    return False


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_in_a_pause_clients_and_probes_are_told_to_try_again(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY)
    settings: dict[str, Any] = {"admin": "127.0.0.1:0", "extension": ["deadly:install"]}
    settings["allow_origin"] = ["http://shop.test"]
    tls = None
    if scheme == "https":
        authority = Authority(tmp_path)
        chain, key = authority.issue("localhost")
        settings |= {"tls_cert": str(chain), "tls_key": str(key)}
        tls = authority.client()
    with deployed(tmp_path, settings) as deployment:
        (tmp_path / "deadly").touch()
        kill_server(deployment)
        # It waits in the queue of the socket until somebody answers.
        ready = Answer(deployment.url, "GET", "/readyz", tls)
        assert ready.status == 503
        assert ready.body == b"the server has ended several times in a minute: see its log\n"
        assert Answer(deployment.url, "GET", "/healthz", tls).status == 503
        refused = Answer(deployment.url, "POST", "/cometd", tls)
        assert refused.status == 503
        assert refused.headers["Retry-After"] == "1"
        assert refused.headers["Connection"] == "close"
        assert orjson.loads(refused.body)[0]["error"].startswith("503::server_busy")
        page = Answer(deployment.url, "GET", "/events?channel=/a", tls, Origin="http://shop.test")
        # After another status, EventSource would not try again.
        assert page.status == 200
        assert page.headers["Content-Type"] == "text/event-stream"
        assert page.headers["Access-Control-Allow-Origin"] == "http://shop.test"
        wait, event, data = page.body.decode().strip().splitlines()
        assert 1000 <= int(wait.removeprefix("retry: ")) <= 3000
        assert (event, data) == ("event: unavailable", 'data: {"error":"503::server_busy"}')
        [admin] = re.findall(r"administration is at (\S+)/console/", deployment.log())
        told = Answer(admin, "GET", "/admin/api/v1/about", None)
        assert told.status == 503
        # As the administration says it, for programs that operate it.
        assert orjson.loads(told.body)["error"] == {
            "code": "resource.temporary.unavailable",
            "message": ready.body.decode().strip(),
        }
        (tmp_path / "deadly").unlink()
        ends_at = time.monotonic() + LIMIT_S
        while not is_ready(deployment.url, tls):
            assert time.monotonic() < ends_at, deployment.log()
            time.sleep(0.1)


async def test_a_stand_in_leaves_the_queue_of_the_socket_as_long_as_it_was() -> None:
    address = Address("localhost", 0, ips=("127.0.0.1",))
    [listening] = address.listen()
    with listening:
        door = StandbyDoor(address, Origins(), is_healthy=False, reason="a test")
        await door.open([listening.dup()])
        about = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, WAITING.size)
        await door.close()
    assert WAITING.unpack(about) == (min(BACKLOG, MOST_WAITING),)
