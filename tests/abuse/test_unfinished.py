"""Many clients that never finish their requests."""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from select import select
from time import monotonic
from urllib.parse import urlsplit

import pytest

from tests.abuse.attacker import TIMEOUT_S, SocketWire, Wire, frame, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target
from tests.serving import Server, Servers

KIBIBYTE = 1024
HEAD = (
    b"POST /cometd HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100000\r\n\r\n"
)


def unfinished(server: Server, size: int) -> socket.socket:
    url = urlsplit(server.url)
    connection = socket.create_connection((url.hostname or "", url.port or 0), timeout=TIMEOUT_S)
    connection.sendall(HEAD)
    connection.sendall(b" " * size)
    return connection


def outcome(server: Server) -> bytes:
    """The answer to a client that finishes its request, with a body of spaces."""
    with unfinished(server, 100_000) as connection:
        return connection.recv(4096)


def test_a_request_beyond_the_room_for_unfinished_ones_is_refused_and_may_be_retried(
    servers: Servers,
) -> None:
    server = servers.with_settings({"max_unfinished_bytes": 100 * KIBIBYTE})
    with ExitStack() as open_ones:
        clients = [open_ones.enter_context(unfinished(server, 30 * KIBIBYTE)) for _ in range(4)]
        answered, _, _ = select(clients, [], [], TIMEOUT_S)
        assert len(answered) == 1
        answer = answered[0].recv(4096)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"503::server_busy" in answer
    deadline = monotonic() + TIMEOUT_S
    while not (heard := outcome(server)).startswith(b"HTTP/1.1 400 "):
        assert heard.startswith(b"HTTP/1.1 503 ")
        assert monotonic() < deadline, "what was given up still takes room"


INTERNAL = 1011


def begun(server: Server, size: int) -> SocketWire:
    """A socket with the first part of a message, so many bytes long."""
    wire = SocketWire(server.url, {})
    wire.send(frame(b" " * size, is_final=False))
    return wire


def half(server: Server, size: int) -> SocketWire:
    """A socket with half a frame."""
    wire = SocketWire(server.url, {})
    wire.send(frame(b" " * 2 * size)[:-size])
    return wire


# Complete fragments are kept twice: by the reader, and for another process.
@pytest.mark.parametrize(("leave_unfinished", "copies"), [(begun, 2), (half, 1)])
def test_messages_of_sockets_take_room_like_bodies(
    servers: Servers, leave_unfinished: Callable[[Server, int], SocketWire], copies: int
) -> None:
    server = servers.with_settings({"max_unfinished_bytes": 100 * copies * KIBIBYTE})
    with ExitStack() as open_ones:
        clients = [
            open_ones.enter_context(leave_unfinished(server, 30 * KIBIBYTE)) for _ in range(4)
        ]
        answered, _, _ = select([client.socket for client in clients], [], [], TIMEOUT_S)
        refused = [client for client in clients if client.socket in answered]
        assert len(refused) == 1
        assert refused[0].close_code() == INTERNAL
        with SocketWire(server.url, {}) as other:
            other.say({"channel": "/meta/handshake", "version": "1.0"})
            assert not other.hear()[0]["successful"], "a small message needs no room"
    deadline = monotonic() + TIMEOUT_S
    while not (heard := outcome(server)).startswith(b"HTTP/1.1 400 "):
        assert heard.startswith(b"HTTP/1.1 503 ")
        assert monotonic() < deadline, "what was given up still takes room"


ATTACKER, VICTIM = "2001:db8:bad:1::{}", "198.51.100.7"


def half_body(target: Target, address: str, size: int) -> Wire:
    wire = target.wire()
    head = HEAD.replace(b"\r\n\r\n", f"\r\nX-Forwarded-For: {address}\r\n\r\n".encode())
    wire.send(head + b" " * size)
    return wire


def half_message(target: Target, address: str, size: int) -> Wire:
    wire = SocketWire(target.url, {"X-Forwarded-For": address})
    # Complete fragments are kept twice.
    wire.send(frame(b" " * (size // 2), is_final=False))
    return wire


@pytest.mark.parametrize("leave_unfinished", [half_body, half_message])
@pytest.mark.parametrize("fast_lane", [True, False], ids=["fast lane", "ordinary front end"])
def test_one_network_cannot_take_the_room_of_everybody(
    target_with: MakeTarget, leave_unfinished: Callable[[Target, str, int], Wire], fast_lane: bool
) -> None:
    target = target_with(
        trusted_proxies=["127.0.0.1"],
        max_unfinished_bytes=100 * KIBIBYTE,
        fast_lane=fast_lane,
    )
    with ExitStack() as open_ones:
        attackers = [
            open_ones.enter_context(
                leave_unfinished(target, ATTACKER.format(number), 20 * KIBIBYTE)
            )
            for number in range(6)
        ]
        until(lambda: len(refused_of(attackers)) == 4)
        with target.wire() as victim:
            body = b"[" + b" " * (40 * KIBIBYTE) + b"]"
            victim.send(request(body, {"X-Forwarded-For": VICTIM}))
            assert victim.answer().status == 400, "there is room for the others"


def refused_of(wires: list[Wire]) -> list[Wire]:
    answered, _, _ = select([wire.socket for wire in wires], [], [], TIMEOUT_S)
    return [wire for wire in wires if wire.socket in answered]


def until(is_true: Callable[[], bool]) -> None:
    deadline = monotonic() + TIMEOUT_S
    while not is_true():
        assert monotonic() < deadline
