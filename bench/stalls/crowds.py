"""Many clients that come at the same time, most of them over WebSocket, and what they send first.

The server stands until all have sent it, as if it had just been started again.

Runs in a process of its own, see `Elsewhere`.
"""

import base64
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.measure import allow_many_files
from bench.processes import listening_sockets, open_files, parents
from bench.stalls.clients import Client, Message, connect, publish, subscribe
from bench.stalls.returning import Crowd as Returning
from bench.stalls.volleys import in_frame

_CHANNEL = "/stall/sockets"
_TIMEOUT_S = 60.0
_CHUNK = 256 * 1024
_OPENED = b"HTTP/1.1 101 "
_HELLO: Message = {
    "channel": "/meta/handshake",
    "version": "1.0",
    "supportedConnectionTypes": ["websocket"],
}


@dataclass
class Guest:
    """A client: its first bytes, and what it sends once its socket is open, if anything."""

    first: bytes
    then: bytes = b""
    # What is in the answer to the last.
    answer: bytes = b'"successful":true'
    link: socket.socket | None = None
    received: int = 0
    # The end of what it has received: the beginning of an answer, perhaps.
    end: bytes = b""


def server_at(port: int) -> int:
    """Return the process that listens there."""
    sockets = listening_sockets(port)
    [server] = [pid for pid in parents() if not sockets.isdisjoint(open_files(pid))]
    return server


@contextmanager
def standing(server: int) -> Iterator[None]:
    """Let a process stand still meanwhile."""
    os.kill(server, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server, signal.SIGCONT)


def _hear(guest: Guest) -> bool:
    """Read what is there for a client; return whether it has its answer."""
    link = _link_of(guest)
    found = link.recv(_CHUNK)
    if not found:
        raise RuntimeError("the server closes the connection")
    guest.received += len(found)
    found = guest.end + found
    if guest.then and _OPENED in found:
        link.sendall(guest.then)
        guest.then = b""
    guest.end = found[-len(guest.answer) :]
    return guest.answer in found


def _link_of(guest: Guest) -> socket.socket:
    if guest.link is None:
        raise RuntimeError("this client has no connection")
    return guest.link


def _upgrade(url: str, cookie: str = "") -> bytes:
    split, key = urlsplit(url), base64.b64encode(bytes(16)).decode()
    head = f"GET {split.path} HTTP/1.1\r\nHost: {split.netloc}\r\n{cookie}"
    head += "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    return f"{head}Sec-WebSocket-Key: {key}\r\n\r\n".encode()


def _frame(message: Message) -> bytes:
    return in_frame(json.dumps([message]).encode())


def askers(url: str, count: int, path: str) -> list[Guest]:
    """Return clients that ask for something."""
    head = f"GET {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode()
    return [Guest(head, answer=b"HTTP/1.1 ") for _ in range(count)]


def strangers(url: str, count: int) -> list[Guest]:
    """Return clients that send an upgrade and a handshake at once."""
    return [Guest(_upgrade(url) + _frame(_HELLO)) for _ in range(count)]


def members(url: str, count: int, messages: int) -> list[Guest]:
    """Return clients of sessions for which this many messages wait."""
    crowd = Returning(url, count)
    crowd.say(subscribe(_CHANNEL))
    crowd.say(connect(advice={"timeout": 0}))
    publisher = Client(url)
    for number in range(messages):
        publisher.say(publish(_CHANNEL, {"n": number, "text": "x" * 100}))
    crowd.close()
    back = {**connect({"ack": 1}, advice={"timeout": 0}), "connectionType": "websocket"}
    return [
        Guest(_upgrade(url, cookie), _frame({**back, "clientId": own}))
        for own, cookie in zip(crowd.ids, crowd.cookies, strict=True)
    ]


class Crowd:
    """All clients, and the server to which they come."""

    def __init__(self, url: str, guests: Sequence[Guest]) -> None:
        split = urlsplit(url)
        self._place = split.hostname or "", split.port or 0
        self._server = server_at(self._place[1])
        self._guests = guests

    def open(self) -> None:
        """Connect all of them, as fast as the server's backlog allows."""
        for guest in self._guests:
            guest.link = socket.create_connection(self._place, _TIMEOUT_S)
            guest.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def come(self) -> int:
        """Send everything; return how many bytes came back once each client has an answer."""
        with standing(self._server):
            if self._guests[0].link is None:
                self.open()
            for guest in self._guests:
                _link_of(guest).sendall(guest.first)
        with selectors.DefaultSelector() as selector:
            for guest in self._guests:
                selector.register(_link_of(guest), selectors.EVENT_READ, guest)
            while selector.get_map():
                ready = selector.select(_TIMEOUT_S)
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    if _hear(key.data):
                        selector.unregister(key.fileobj)
        return sum(guest.received for guest in self._guests)

    def leave(self) -> int:
        """Close all connections without a word."""
        with standing(self._server):
            for guest in self._guests:
                _link_of(guest).close()
        return 0


def guests_for(url: str, way: str, count: int, *words: str) -> list[Guest]:
    """Return the clients that come in this way."""
    if way == "asking":
        return askers(url, count, *words)
    return members(url, count, *map(int, words)) if way == "returning" else strangers(url, count)


def main() -> None:
    url, way, count, *words = sys.argv[1:]
    allow_many_files()
    crowd = Crowd(url, guests_for(url, way, int(count), *words))
    attack = crowd.come
    if way in {"open", "asking"}:
        crowd.open()
    elif way == "leaving":
        crowd.come()
        attack = crowd.leave
    print("ready", flush=True)
    sys.stdin.readline()
    print(attack(), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
