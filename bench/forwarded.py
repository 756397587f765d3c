"""Measures what an exchange costs whose session another worker has: `python -m bench.forwarded`.

Two workers run, each with a store. Clients publish to nobody, one request after the other on each
connection, first at the worker that has their sessions, then at the other one. The processor time
of both workers counts, without their stores'. With `--hosts`, the link between them is one between
two machines, with TLS over loopback.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from signal import SIGINT
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast
from unittest.mock import patch
from urllib.parse import urlsplit

import aiohttp
import orjson

from holdfast.compose import serving, several
from holdfast.compose.forwarding import Forwarding
from holdfast.compose.host_door import open_host_door
from holdfast.compose.host_links import HostLinks
from holdfast.compose.placement import placed
from holdfast.settings import Settings
from holdfast.web.http.addresses import listen_at
from tests.web.certificates import Authority

if TYPE_CHECKING:
    from holdfast.compose.host_overview import HostOverview

_PATH = "/cometd"
_JSON = "application/json"
# Of two machines, which are two addresses of this one.
_NAMES = ("127.0.0.1", "127.0.0.2")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Repeater(asyncio.Protocol):
    """A connection that sends a request again whenever it has the reply."""

    def __init__(self, request: bytes, ends: "Countdown") -> None:
        self._request, self._ends = request, ends
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, body = self._heard.partition(b"\r\n\r\n")
        if not found or len(body) < _length_in(head):
            return
        if b'"successful":true' not in body:
            raise RuntimeError(body)
        self._heard = b""
        if self._ends.go_on():
            self._transport.write(self._request)
        else:
            self._transport.close()


class Countdown:
    """How many exchanges are left."""

    def __init__(self, count: int) -> None:
        self._left = count
        self.is_over = asyncio.Event()

    def go_on(self) -> bool:
        self._left -= 1
        if self._left <= 0:
            self.is_over.set()
        return self._left > 0


def _length_in(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0])


async def _enter(http: aiohttp.ClientSession, url: str) -> tuple[str, str]:
    """Return the client id and the cookies of a new session."""
    hello = {
        "channel": "/meta/handshake",
        "version": "1.0",
        "supportedConnectionTypes": ["long-polling"],
    }
    async with http.post(url + _PATH, json=[hello]) as response:
        [reply] = await response.json(content_type=None)
        if not reply["successful"]:
            raise RuntimeError(reply)
        cookies = [each.partition(";")[0] for each in response.headers.getall("Set-Cookie")]
        return reply["clientId"], "; ".join(cookies)


def _request(url: str, client_id: str, cookie: str) -> bytes:
    message = {"channel": "/bench", "data": "x" * 100, "clientId": client_id, "id": "1"}
    body = orjson.dumps([message])
    head = (
        f"POST {_PATH} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nContent-Type: {_JSON}\r\n"
        f"Cookie: {cookie}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _drive(home: str, door: str, connections: int, count: int) -> None:
    """Exchange so often with sessions at `home`, over connections to `door`."""
    ends = Countdown(count)
    loop, place = asyncio.get_running_loop(), urlsplit(door)
    host, port = str(place.hostname), int(place.port or 0)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        sessions = [await _enter(http, home) for _ in range(connections)]
    transports = [
        (await loop.create_connection(_repeater(door, each, ends), host, port))[0]
        for each in sessions
    ]
    await ends.is_over.wait()
    for each in transports:
        each.close()


def _repeater(door: str, session: tuple[str, str], ends: Countdown) -> Callable[[], Repeater]:
    request = _request(door, *session)
    return lambda: Repeater(request, ends)


def _cpu_s(pid: int) -> float:
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


class _Hosts(NamedTuple):
    """Two machines, each of which has one shard."""

    ports: list[int]
    certificates: Path

    async def host_of(self, shard: int, /) -> str | None:
        return _NAMES[shard]

    def open(self, settings: Settings, number: int, stack: AsyncExitStack) -> HostLinks:
        """Let the worker of this shard have its host's port, and return its links."""
        name = _NAMES[number]
        own = settings.model_copy(
            update={
                "hosts": [f"{a}:{b}" for a, b in zip(_NAMES, self.ports, strict=True)],
                "own_host": name,
                "link_cert": self.certificates / f"{name}.pem",
                "link_key": self.certificates / f"{name}.key",
                "link_ca": self.certificates / "authority.pem",
            }
        )
        sockets = listen_at([name], self.ports[number], 100)
        links = placed(settings, number, 2).links
        open_host_door(sockets, links, len(_NAMES), stack)
        # No operator asks about hosts.
        return HostLinks(own, self, cast("HostOverview", None))


async def _serve(number: int, data: Path, hosts: _Hosts | None) -> None:
    given: dict[str, Any] = {"port": 0, "data": data, "journal": False, "chat": False}
    settings = Settings(**given)
    async with AsyncExitStack() as stack:
        # Otherwise connections would go to the worker that has the sessions.
        stack.enter_context(patch.object(Forwarding, "share", _share_nothing))
        if hosts is not None:
            links = hosts.open(settings, number, stack)
            stack.enter_context(patch.object(several, "host_links", lambda *_: links))
        async with serving(settings, placed(settings, number, 2)) as url:
            sys.stdout.write(url + "\n")
            sys.stdout.flush()
            await asyncio.Event().wait()


async def _share_nothing(*_: object) -> None:
    """Let every connection stay where it is."""


def _make_certificates(home: Path) -> None:
    """Make an authority, and a certificate for each machine."""
    authority = Authority(home, "authority")
    for name in _NAMES:
        for file in authority.issue("a host", at=name):
            file.rename(home / f"{name}{file.suffix}")


def _free_ports() -> list[int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as other:
        return [each.getsockname()[1] for each in (one, other)]


@contextmanager
def _workers(data: Path, *, has_hosts: bool) -> Iterator[list[tuple[subprocess.Popen[str], str]]]:
    words = [sys.executable, "-m", "bench.forwarded", "--data", str(data)]
    if has_hosts:
        _make_certificates(data)
        words += ["--ports", *map(str, _free_ports())]
    words.append("--serve")
    started = [
        subprocess.Popen([*words, str(number)], stdout=subprocess.PIPE, text=True)
        for number in (0, 1)
    ]
    try:
        yield [(each, cast("IO[str]", each.stdout).readline().strip()) for each in started]
    finally:
        for each in started:
            # It ends its store.
            each.send_signal(SIGINT)
        for each in started:
            each.wait()


def _measure(connections: int, count: int, rounds: int, *, has_hosts: bool) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as home,
        _workers(Path(home), has_hosts=has_hosts) as two,
    ):
        (first, home_url), (second, door_url) = two
        pids = [first.pid, second.pid]

        def cost_us(door: str, count: int) -> list[float]:
            before = [_cpu_s(pid) for pid in pids]
            asyncio.run(_drive(home_url, door, connections, count))
            after = [_cpu_s(pid) for pid in pids]
            return [(b - a) / count * 1e6 for a, b in zip(before, after, strict=True)]

        for door in (home_url, door_url):
            cost_us(door, count // 10)
        for _ in range(rounds):
            own = sum(cost_us(home_url, count))
            at_home, at_door = cost_us(door_url, count)
            load = Path("/proc/loadavg").read_text().split()[0]
            forwarded = at_home + at_door
            sys.stdout.write(
                f"{connections} connections: own {own:.1f} us, forwarded {forwarded:.1f} us (door "
                f"{at_door:.1f}, home {at_home:.1f}): {forwarded / own:.2f} times; load {load}\n"
            )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.forwarded", description=__doc__)
    parser.add_argument("--connections", type=int, nargs="+", default=[8, 1])
    parser.add_argument("--count", type=int, default=20_000, help="exchanges of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", action="store_true", help="link them as two machines are")
    parser.add_argument("--ports", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve is not None:
        import uvloop

        hosts = None if asked.ports is None else _Hosts(asked.ports, asked.data)
        with suppress(KeyboardInterrupt):
            uvloop.run(_serve(asked.serve, asked.data, hosts))
        return
    for connections in asked.connections:
        _measure(connections, asked.count, asked.rounds, has_hosts=asked.hosts)


if __name__ == "__main__":
    main()
