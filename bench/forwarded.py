"""Measures what an exchange costs whose session another worker has: `python -m bench.forwarded`.

Two workers run, each with a store. Clients publish to nobody, one request after the other on each
connection, first at the worker that has their sessions, then at the other one. The processor time
of both workers counts, without their stores'.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGINT
from typing import IO, Any, cast
from unittest.mock import patch
from urllib.parse import urlsplit

import aiohttp
import orjson

from holdfast.compose import serving
from holdfast.compose.forwarding import Forwarding
from holdfast.compose.placement import placed
from holdfast.settings import Settings

_PATH = "/cometd"
_JSON = "application/json"
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
    """Return the client id and the cookie of a new session."""
    hello = {
        "channel": "/meta/handshake",
        "version": "1.0",
        "supportedConnectionTypes": ["long-polling"],
    }
    async with http.post(url + _PATH, json=[hello]) as response:
        [reply] = await response.json(content_type=None)
        if not reply["successful"]:
            raise RuntimeError(reply)
        return reply["clientId"], response.headers["Set-Cookie"].partition(";")[0]


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


async def _serve(number: int, data: Path, port: int) -> None:
    given: dict[str, Any] = {"port": port, "data": data, "journal": False, "chat": False}
    settings = Settings(**given)
    # Otherwise connections would go to the worker that has the sessions.
    with patch.object(Forwarding, "share", _share_nothing):
        async with serving(settings, placed(settings, number, 2)) as url:
            sys.stdout.write(url + "\n")
            sys.stdout.flush()
            await asyncio.Event().wait()


async def _share_nothing(*_: object) -> None:
    """Let every connection stay where it is."""


@contextmanager
def _workers(data: Path) -> Iterator[list[tuple[subprocess.Popen[str], str]]]:
    words = [sys.executable, "-m", "bench.forwarded", "--data", str(data), "--serve"]
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


def _measure(connections: int, count: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as home, _workers(Path(home)) as two:
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
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve is not None:
        import uvloop

        with suppress(KeyboardInterrupt):
            uvloop.run(_serve(asked.serve, asked.data, 0))
        return
    for connections in asked.connections:
        _measure(connections, asked.count, asked.rounds)


if __name__ == "__main__":
    main()
