"""Many clients that never finish their requests."""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from select import select
from time import monotonic
from urllib.parse import urlsplit

import pytest

from tests.abuse.attacker import SocketWire, frame
from tests.serving import Server, Servers

KIBIBYTE = 1024
HEAD = (
    b"POST /cometd HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100000\r\n\r\n"
)


def unfinished(server: Server, size: int) -> socket.socket:
    url = urlsplit(server.url)
    connection = socket.create_connection((url.hostname or "", url.port or 0), timeout=5)
    connection.sendall(HEAD)
    connection.sendall(b" " * size)
    return connection


def outcome(server: Server) -> bytes:
    """What a client hears that does finish, with a body that is nothing but spaces."""
    with unfinished(server, 100_000) as connection:
        return connection.recv(4096)


def test_who_comes_when_nothing_more_fits_is_told_so_and_may_come_again(servers: Servers) -> None:
    server = servers.with_settings({"max_unfinished_bytes": 100 * KIBIBYTE})
    with ExitStack() as open_ones:
        clients = [open_ones.enter_context(unfinished(server, 30 * KIBIBYTE)) for _ in range(4)]
        answered, _, _ = select(clients, [], [], 5)
        assert len(answered) == 1
        answer = answered[0].recv(4096)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"503::server_busy" in answer
    deadline = monotonic() + 5
    while not (heard := outcome(server)).startswith(b"HTTP/1.1 400 "):
        assert heard.startswith(b"HTTP/1.1 503 ")
        assert monotonic() < deadline, "what was given up still takes room"


INTERNAL = 1011


def begun(server: Server, size: int) -> SocketWire:
    """A socket with a message of which so much has come, and no end."""
    wire = SocketWire(server.url, {})
    wire.send(frame(b" " * size, is_final=False))
    return wire


def half(server: Server, size: int) -> SocketWire:
    """A socket with a frame of which half has come."""
    wire = SocketWire(server.url, {})
    wire.send(frame(b" " * 2 * size)[:-size])
    return wire


@pytest.mark.parametrize("leave_unfinished", [begun, half])
def test_messages_of_sockets_take_room_like_bodies(
    servers: Servers, leave_unfinished: Callable[[Server, int], SocketWire]
) -> None:
    server = servers.with_settings({"max_unfinished_bytes": 100 * KIBIBYTE})
    with ExitStack() as open_ones:
        clients = [
            open_ones.enter_context(leave_unfinished(server, 30 * KIBIBYTE)) for _ in range(4)
        ]
        answered, _, _ = select([client.socket for client in clients], [], [], 5)
        refused = [client for client in clients if client.socket in answered]
        assert len(refused) == 1
        assert refused[0].close_code() == INTERNAL
        with SocketWire(server.url, {}) as other:
            other.say({"channel": "/meta/handshake", "version": "1.0"})
            assert not other.hear()[0]["successful"], "a small message needs no room"
    deadline = monotonic() + 5
    while not (heard := outcome(server)).startswith(b"HTTP/1.1 400 "):
        assert heard.startswith(b"HTTP/1.1 503 ")
        assert monotonic() < deadline, "what was given up still takes room"
