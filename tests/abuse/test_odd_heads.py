"""Heads that the HTTP library cannot handle, and clients that leave before their answer."""

import socket
import struct

import pytest

from tests.abuse.attacker import PING, frame, request
from tests.abuse.target import Target

UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
KEY = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET /", {"Expect": "\xff"}),
        ("GET /cometd", {**UPGRADE, "Sec-WebSocket-Key": "\xff"}),
        ("GET /cometd", {**UPGRADE, **KEY, "Sec-WebSocket-Version": "\xff"}),
        ("GET /cometd", {**UPGRADE, **KEY, "Sec-WebSocket-Protocol": "\xff"}),
        ("GET /", {"If-Modified-Since": f"Thu, 01 Jan 2000 {'9' * 17}:00:00 GMT"}),
        ("GET /", {"If-Range": f"Thu, 01 Jan {'9' * 17} 00:00:00 GMT"}),
        ("GET /", {"If-Modified-Since": "Mon, 01 Jan 9_999_999_999 00:00:00 GMT"}),
        ("GET /static/" + "a" * 7000, {}),
        ("GET /%73tatic/" + "a" * 300, {}),
        ("GET http://holdfast.localhost/static/" + "a" * 300, {}),
    ],
)
def test_odd_heads_are_malformed(
    method: str, headers: dict[str, str], either_front_end: Target
) -> None:
    with either_front_end.wire() as wire:
        wire.send(request(b"", headers, method=method))
        answer = wire.answer()
        assert (answer.status, answer.error()) == (400, "400:not HTTP:request_malformed")


def test_ordinary_heads_are_not_refused(either_front_end: Target) -> None:
    date = "Thu, 01 Jan 2026 00:00:00 GMT"
    with either_front_end.wire() as wire:
        wire.send(request(b"", {"If-Modified-Since": date, "Accept": "\xff"}, method="GET /"))
        assert wire.answer().status in (200, 304)


@pytest.mark.parametrize(
    "path",
    ["/static/nothing.js?" + "x" * 1000, "/static/\xff", "/static/%ff", "/static/%00", "/\xff"],
)
def test_impossible_file_names_are_refused(path: str, either_front_end: Target) -> None:
    with either_front_end.wire() as wire:
        wire.send(request(b"", method=f"GET {path}"))
        assert wire.answer().status in (400, 404)


def test_a_token_may_be_among_the_sub_protocols(either_front_end: Target) -> None:
    with either_front_end.wire() as wire:
        token = {"Sec-WebSocket-Protocol": "bearer, " + "x" * 3000}
        wire.send(request(b"", {**UPGRADE, **KEY, **token}, method="GET /cometd"))
        assert wire.answer().status == 101


@pytest.mark.parametrize(
    "data",
    [
        request(b"", {**UPGRADE, **KEY}, method="GET /cometd"),
        request(b"{}", {"Expect": "100-continue"}, method="POST /"),
        request(b"{}", {"Expect": "100-continue"}),
        request(b"", {**UPGRADE, **KEY}, method="GET /cometd") + frame(b"", PING) * 200,
    ],
    ids=["upgrade", "expectation", "expectation of a publisher", "pings"],
)
def test_a_client_that_leaves_at_once_causes_no_fault(
    data: bytes, either_front_end: Target
) -> None:
    with either_front_end.bystander():
        for _ in range(20):
            with either_front_end.wire() as wire:
                wire.send(data)
                wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_refused_sub_protocols_are_not_logged(either_front_end: Target) -> None:
    with either_front_end.wire() as wire:
        offer = {**UPGRADE, **KEY, "Sec-WebSocket-Protocol": "chat, superchat"}
        wire.send(request(b"", offer, method="GET /cometd"))
        assert wire.answer().status == 101
    assert "superchat" not in either_front_end.log()
