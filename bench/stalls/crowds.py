"""Many clients that come at the same time, most of them over WebSocket, and what they send first.

The server stands until all have sent it, as if it had just been started again.

Runs in another process, see `Elsewhere`.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.measure import allow_many_files
from bench.processes import listening_sockets, open_files, parents
from bench.stalls.clients import Message, connect
from bench.stalls.returning import CHUNK, TIMEOUT_S, hear_all, prepared
from bench.stalls.volleys import UPGRADE, handshake, in_frame, in_request

_OPENED = b"HTTP/1.1 101 "


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
    found = link.recv(CHUNK)
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


def _upgrade(url: str, *fields: str) -> bytes:
    split = urlsplit(url)
    return in_request(split.netloc, f"GET {split.path}", b"", *fields, *UPGRADE)


def _frame(message: Message) -> bytes:
    return in_frame(json.dumps([message]).encode())


def askers(url: str, count: int, path: str) -> list[Guest]:
    """Return clients that ask for something."""
    head = in_request(urlsplit(url).netloc, f"GET {path}", b"")
    return [Guest(head, answer=b"HTTP/1.1 ") for _ in range(count)]


def strangers(url: str, count: int) -> list[Guest]:
    """Return clients that send an upgrade and a handshake at once."""
    return [Guest(_upgrade(url) + _frame(handshake({}))) for _ in range(count)]


def members(url: str, count: int, messages: int) -> list[Guest]:
    """Return clients of sessions for which this many messages wait."""
    crowd = prepared(url, count, messages)
    crowd.close()
    back = {**connect({"ack": 1}, advice={"timeout": 0}), "connectionType": "websocket"}
    return [
        Guest(_upgrade(url, cookie.strip()), _frame({**back, "clientId": own}))
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
            guest.link = socket.create_connection(self._place, TIMEOUT_S)
            guest.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def come(self) -> int:
        """Send everything; return how many bytes came back once each client has an answer."""
        with standing(self._server):
            if self._guests[0].link is None:
                self.open()
            for guest in self._guests:
                _link_of(guest).sendall(guest.first)
        guests = {_link_of(guest): guest for guest in self._guests}
        hear_all(guests, lambda link: _hear(guests[link]))
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
