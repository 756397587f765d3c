"""A well-behaved client that measures its waits, in a process of its own, so that only they count.

Publishes to itself until its standard input ends; then prints the worst and the middle time, and
how long the server worked at most meanwhile, in ms.
"""

import json
import select
import socket
import sys
import time
from pathlib import Path

PAUSE_S = 0.005


class Client:
    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._cookie = ""

    def ask(self, message: dict[str, object]) -> list[dict[str, object]]:
        body = json.dumps([message]).encode()
        cookie = f"Cookie: {self._cookie}\r\n" if self._cookie else ""
        head = f"POST /cometd HTTP/1.1\r\nHost: localhost\r\n{cookie}"
        self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return self._answer()

    def _answer(self) -> list[dict[str, object]]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._receive()
        head, _, body = data.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        if "Set-Cookie" in fields:
            self._cookie = fields["Set-Cookie"].partition(";")[0]
        while len(body) < int(fields["Content-Length"]):
            body += self._receive()
        messages: list[dict[str, object]] = json.loads(body)
        return messages

    def _receive(self) -> bytes:
        data = self._socket.recv(65536)
        assert data, "the server closed the connection"
        return data


def main(host: str, port: int, server: str) -> None:
    client = Client(host, port)
    schedule = Path("/proc", server, "schedstat")
    handshake = {"channel": "/meta/handshake", "supportedConnectionTypes": ["long-polling"]}
    (session,) = client.ask({**handshake, "version": "1.0"})
    mine = {"clientId": session["clientId"]}
    client.ask({"channel": "/meta/subscribe", "subscription": "/bystander", **mine})
    # A session that never connects would have to make room for others.
    client.ask({"channel": "/meta/connect", "connectionType": "long-polling", **mine})
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    times_ms: list[float] = []
    worked_ms = 0.0
    # Some waits are measured after the attack, which may have left something behind.
    number = left = 10
    while left > 0:
        if select.select([sys.stdin], [], [], PAUSE_S)[0]:
            left -= 1
        number += 1
        before = _processor_ms(schedule)
        begin = time.perf_counter()
        heard = client.ask({"channel": "/bystander", "data": number, **mine})
        times_ms.append((time.perf_counter() - begin) * 1000)
        worked_ms = max(worked_ms, _processor_ms(schedule) - before)
        assert [each.get("data") for each in heard] == [number, None], heard
    client.ask({"channel": "/meta/disconnect", **mine})
    times_ms.sort()
    sys.stdout.write(json.dumps([times_ms[-1], times_ms[len(times_ms) // 2], worked_ms]) + "\n")


def _processor_ms(schedule: Path) -> float:
    """The processor time of the server's main thread, in which its event loop runs."""
    return int(schedule.read_text().split()[0]) / 1e6


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
