"""Frames that are too large, wrong, or too many."""

import re
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import orjson
import pytest

from tests.abuse.attacker import (
    BINARY,
    CLOSE,
    HANDSHAKE,
    MIB,
    PING,
    PONG,
    SocketPerson,
    frame,
    request,
)
from tests.abuse.conftest import PATIENT, MakeTarget
from tests.abuse.target import Target
from tests.slowness import times_slower

CONTINUATION = 0x0
NORMAL, GOING_AWAY, PROTOCOL, UNSUPPORTED, INVALID, POLICY = 1000, 1001, 1002, 1003, 1007, 1008
TOO_BIG = 1009
TOO_LARGE = f"413:max_request_size,{4 * MIB}:request_too_large"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(b"x" * (4 * MIB + 1)), TOO_BIG),
        (frame(b"")[:1] + struct.pack("!BQ", 0xFF, 2**40), TOO_BIG),
        (frame(b"x" * 3 * MIB, is_final=False) + frame(b"x" * 3 * MIB, CONTINUATION), TOO_BIG),
        (frame(b"[{}]", BINARY), UNSUPPORTED),
        (frame(b"{nope"), INVALID),
        (frame(b""), INVALID),
        (frame(b"[]"), INVALID),
        (frame(b"[1]"), INVALID),
        (frame(b"\xff\xfe"), INVALID),
        (frame(b'["\xc3'), INVALID),
        (frame(b"[" * 40_000), INVALID),
        (frame(b"[" * 100_000), TOO_BIG),
        (frame(b'[{"channel":"/a","data":NaN}]'), INVALID),
        (frame(b"[" + b"{}," * 5_000 + b"{}]"), TOO_BIG),
        (frame(b"[{}]", CONTINUATION), PROTOCOL),
        (frame(b"[", is_final=False) + frame(b"[{}]"), PROTOCOL),
        (frame(b"x", 0x3), PROTOCOL),
        (frame(b"x", 0xB), PROTOCOL),
        (frame(b"x" * 126, PING), PROTOCOL),
        (frame(b"x", PING, is_final=False), PROTOCOL),
        (bytes([frame(b"[{}]")[0] | 0x40]) + frame(b"[{}]")[1:], PROTOCOL),
    ],
)
def test_each_protocol_error_closes_the_socket_with_its_code(
    data: bytes, code: int, either_front_end: Target
) -> None:
    with either_front_end.socket_person() as person:
        person.settle_in("/a")
        person.send_until_refused(data)
        assert person.close_code() == code
        person.send_until_refused(frame(struct.pack("!H", code), CLOSE))
        assert person.is_closed()
    assert either_front_end.growth_mib() < 40


@pytest.mark.parametrize(
    "unmasked",
    [
        frame(b"[{}]", is_masked=False),
        frame(b"", is_masked=False),
        frame(b"x", PING, is_masked=False),
        frame(b"", CLOSE, is_masked=False),
        frame(b"x" * 70_000, is_masked=False),
    ],
)
def test_a_frame_without_a_mask_closes_the_socket(
    unmasked: bytes, either_front_end: Target
) -> None:
    with either_front_end.socket_person() as person:
        person.send(frame(b"here", PING) + unmasked)
        assert person.read_frame() == (PONG, b"here"), "what came before it is heard"
        assert person.close_code() == PROTOCOL


def test_a_frame_without_a_mask_is_found_in_whatever_pieces(target: Target) -> None:
    with target.socket_person() as person:
        hello = orjson.dumps([person.message("/a", data="x" * 200)])
        for byte in frame(hello):
            person.send(bytes([byte]))
        assert person.hear()[0]["successful"]
        for byte in frame(hello, is_masked=False)[:2]:
            person.send(bytes([byte]))
        assert person.close_code() == PROTOCOL


def test_a_frame_without_a_mask_may_come_with_the_upgrade(either_front_end: Target) -> None:
    with either_front_end.wire() as wire:
        key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}
        headers = {**key, "Connection": "Upgrade", "Upgrade": "websocket"}
        upgrade = request(b"", headers, method="GET /cometd")
        wire.send(upgrade + frame(b"[{}]", is_masked=False))
        assert wire.answer().status == 101
        opcode, _, *code = wire.read(4)
        assert (opcode, bytes(code)) == (0x80 | CLOSE, struct.pack("!H", PROTOCOL))


@pytest.mark.parametrize("code", [0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65535])
def test_an_invalid_close_code_is_a_protocol_error(code: int, target: Target) -> None:
    with target.socket_person() as person:
        person.send(frame(struct.pack("!H", code), CLOSE))
        assert person.close_code() == PROTOCOL
        assert person.is_closed()


@pytest.mark.parametrize("code", [1000, 1001, 1003, 1007, 1011, 1012, 1014, 3000, 4000, 4999])
def test_a_close_code_that_clients_may_send_is_answered(code: int, target: Target) -> None:
    with target.socket_person() as person:
        person.send(frame(struct.pack("!H", code) + b"bye", CLOSE))
        assert person.close_code() == NORMAL
        assert person.is_closed()


def test_a_close_without_a_code_is_answered(target: Target) -> None:
    with target.socket_person() as person:
        person.send(frame(b"", CLOSE))
        assert person.close_code() == NORMAL
        assert person.is_closed()


def test_the_log_says_why_a_socket_was_closed_and_whose_it_was(target_with: MakeTarget) -> None:
    # Of many only the first are logged one by one: a server of its own. The address of its own
    # pages may be too long for a close, by the number of its port.
    target = target_with(max_interval=2999, docs_url="https://docs.example/")
    explained = (
        f"{TOO_LARGE}; see https://docs.example/reference/error-codes/#413-request_too_large"
    )
    with target.socket() as nobody, target.socket_person() as person:
        nobody.send(frame(b"nope"))
        person.send(frame(b"x" * (4 * MIB + 1))[:1000])
        assert nobody.close_code() == INVALID
        opcode, told = person.read_frame()
        assert opcode == CLOSE
        assert told[2:].decode() == explained
    with target.socket_person() as masked:
        masked.send(frame(b"[{}]", is_masked=False))
        assert masked.close_code() == PROTOCOL
    target.until_logged("the socket of session (none) was closed with 1007: 400:not JSON at byte 0")
    target.until_logged(f"was closed with 1009: {explained}")
    target.until_logged("was closed with 1002: a frame without a mask")
    assert len(re.findall(r"the socket of session [^ (]+/-\d+ was closed", target.log())) == 2


def test_an_address_for_which_a_close_has_no_room_is_left_out(target_with: MakeTarget) -> None:
    target = target_with(max_interval=2998, docs_url=f"https://{'long.' * 9}example/")
    with target.socket_person() as person:
        person.send(frame(b"x" * (4 * MIB + 1))[:1000])
        opcode, told = person.read_frame()
        assert (opcode, told[2:].decode()) == (CLOSE, TOO_LARGE)


@pytest.mark.parametrize("part", [6 * MIB, 100_000])
def test_a_client_that_keeps_sending_too_much_still_learns_why_it_is_closed(
    part: int, either_front_end: Target
) -> None:
    whole = (
        frame(b"x" * part, is_final=False) + frame(b"x" * part, CONTINUATION, is_final=False) * 60
    )
    for _ in range(5):
        with either_front_end.socket_person() as person:
            person.send(whole[: 12 * MIB])
            assert person.close_code() == TOO_BIG
            person.send(frame(struct.pack("!H", TOO_BIG), CLOSE))
    assert either_front_end.growth_mib() < 40


def test_a_client_that_ignores_the_close_is_forgotten(target: Target) -> None:
    with target.bystander(), target.socket_person() as person:
        person.send(frame(b"x", BINARY))
        assert person.close_code() == UNSUPPORTED
        for _ in range(100):
            person.send_until_refused(frame(b"[{}]"))
    target.until_metric("holdfast_sessions", 0)


def test_a_message_may_end_with_ten_thousand_empty_frames(either_front_end: Target) -> None:
    with either_front_end.bystander(), either_front_end.socket_person() as person:
        hello = orjson.dumps([person.message("/a", data=1)])
        parts = frame(hello, is_final=False) + frame(b"", CONTINUATION, is_final=False) * 10_000
        person.send(parts + frame(b"", CONTINUATION))
        assert person.hear()[0]["successful"]
    assert either_front_end.growth_mib() < 20


def test_endless_frames_are_bounded(either_front_end: Target) -> None:
    with either_front_end.bystander(), either_front_end.socket_person() as person:
        person.send(frame(b"[", is_final=False))
        part = frame(b" " * 1000, CONTINUATION, is_final=False) * 100
        while not person.has_answer():
            if person.send_until_refused(part):
                break
        assert person.close_code() == TOO_BIG
    assert either_front_end.growth_mib() < 40


def test_bytes_of_a_message_may_come_one_by_one(target: Target) -> None:
    with target.socket_person() as person:
        hello = orjson.dumps([person.message("/a", data=1)])
        last = len(hello) - 1
        person.send(frame(hello[:1], is_final=False))
        for at in range(1, last):
            person.send(frame(hello[at : at + 1], CONTINUATION, is_final=False))
        person.send(frame(hello[last:], CONTINUATION))
        assert person.hear()[0]["successful"]


def test_pings_are_answered_and_a_flood_of_them_costs_nothing(either_front_end: Target) -> None:
    with either_front_end.bystander(), either_front_end.socket_person() as person:
        person.send(frame(b"are you there", PING))
        assert person.read_frame() == (PONG, b"are you there")
        for _ in range(50):
            person.send(frame(b"x" * 100, PING) * 200)
            for _ in range(200):
                assert person.read_frame()[0] == PONG
        # Its session may have ended on a slow machine; the connection has not.
        assert person.ask(HANDSHAKE)[0]["successful"]
    assert either_front_end.growth_mib() < 20


def test_a_flood_of_pings_with_unread_answers_is_bounded(either_front_end: Target) -> None:
    with (
        either_front_end.bystander(),
        either_front_end.socket_person(receive_buffer=4096) as person,
    ):
        person.socket.settimeout(0.5)
        for _ in range(400):
            if person.send_until_refused(frame(b"x" * 125, PING) * 1000):
                break
        assert either_front_end.growth_mib() < 20
        either_front_end.until_logged("the client does not read")


def test_a_flood_of_messages_with_unread_answers_is_bounded(either_front_end: Target) -> None:
    with (
        either_front_end.bystander(),
        either_front_end.socket_person(receive_buffer=4096) as person,
    ):
        person.socket.settimeout(0.5)
        message = frame(orjson.dumps([person.message("/a", data="x", id="i" * 1000)]))
        for _ in range(400):
            if person.send_until_refused(message * 100):
                break
        assert either_front_end.growth_mib() < 20
        either_front_end.until_logged("the client does not read")


def test_a_socket_that_is_dropped_leaves_its_session_for_a_while(target: Target) -> None:
    with target.socket_person() as person, target.person() as publisher:
        person.settle_in("/a")
        cookie, client_id = person.cookie(), person.client_id
        target.until_metric("holdfast_connects_held", 1)
        person.close()
        target.until_metric("holdfast_connects_held", 0)
        publisher.publish("/a", "kept")
        with target.socket(Cookie=cookie) as again:
            again.say(
                {
                    "channel": "/meta/connect",
                    "clientId": client_id,
                    "connectionType": "websocket",
                    "advice": {"timeout": 0},
                }
            )
            assert again.hear()[0]["data"] == "kept"


def test_a_socket_without_a_known_session_is_closed(target_with: MakeTarget) -> None:
    patience = 2000 * round(times_slower(most=4.0))
    target = target_with(ws_session_timeout=patience, **PATIENT)
    with target.socket_person() as person, target.socket() as silent, target.socket() as chatty:
        chatty.send(frame(b"here", PING))
        assert chatty.read_frame() == (PONG, b"here")
        chatty.say(
            {"channel": "/meta/connect", "clientId": "nobody", "connectionType": "websocket"}
        )
        assert not chatty.hear()[0]["successful"]
        assert silent.close_code() == POLICY
        assert chatty.close_code() == POLICY
        assert person.ask(person.message("/a", data=1))[0]["successful"]
        target.until_logged("408::request_timeout")


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_WebSocket_Key": ""},
        {"Sec_WebSocket_Key": "short"},
        {"Connection": "keep-alive"},
        {"Upgrade": "h2c"},
    ],
)
def test_an_invalid_upgrade_is_refused(headers: dict[str, str], either_front_end: Target) -> None:
    with either_front_end.socket(**headers) as socket:
        assert 400 <= socket.upgrade.status < 500
    assert "Traceback" not in either_front_end.log()


@pytest.mark.parametrize("version", ["", "7", "8", "12", "14", "013", "13, 8", "x"])
def test_an_upgrade_to_another_version_is_told_ours(version: str, either_front_end: Target) -> None:
    with either_front_end.socket(Sec_WebSocket_Version=version) as socket:
        assert socket.upgrade.status == 426
        assert socket.upgrade.error() == "426::websocket_version_unsupported"
        assert socket.upgrade.headers["sec-websocket-version"] == "13"
        assert socket.upgrade.headers["upgrade"] == "websocket"


def test_an_upgrade_without_a_version_is_told_ours(either_front_end: Target) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    with either_front_end.wire() as wire:
        wire.send(request(b"", headers, method="GET /cometd"))
        assert wire.answer().headers["sec-websocket-version"] == "13"


def test_an_upgrade_by_http_1_0_is_refused(either_front_end: Target) -> None:
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}
    headers = {**key, "Connection": "Upgrade", "Upgrade": "websocket"}
    upgrade = request(b"", headers, method="GET /cometd").replace(b"HTTP/1.1", b"HTTP/1.0")
    with either_front_end.wire() as wire:
        wire.send(upgrade)
        answer = wire.answer()
        error = "400:WebSocket needs HTTP/1.1:transport_unknown"
        assert (answer.status, answer.error()) == (400, error)
        assert wire.is_closed()


def test_frames_are_never_compressed(either_front_end: Target) -> None:
    offer = {"Sec_WebSocket_Extensions": "permessage-deflate; client_max_window_bits"}
    with either_front_end.socket(**offer) as socket:
        assert socket.upgrade.status == 101
        assert "sec-websocket-extensions" not in socket.upgrade.headers


def test_only_the_newest_of_many_sockets_of_a_session_gets_its_messages(target: Target) -> None:
    with target.socket_person() as person, target.person() as publisher:
        person.settle_in("/a")
        others = []
        for _ in range(20):
            other = SocketPerson.__new__(SocketPerson)
            super(SocketPerson, other).__init__(target.url, {"Cookie": person.cookie()})
            other.client_id = person.client_id
            other.ask(other.message("/meta/connect", advice={"timeout": 0}))
            others.append(other)
        publisher.publish("/a", 1)
        assert others[-1].hear()[0]["data"] == 1
        assert not any(other.has_answer() for other in others[:-1])
        for other in others:
            other.close()


# Both take 25 s of a processor where nothing is compiled.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("unit", [frame(b"{}"), frame(b"", PING)], ids=["messages", "pings"])
def test_many_small_frames_take_turns_with_others(unit: bytes, target: Target) -> None:
    data = unit * (256 * 1024 // len(unit)) + frame(struct.pack("!H", NORMAL), CLOSE)
    with target.bystander(most_work_ms=500.0), ExitStack() as stack:
        sockets = [stack.enter_context(target.socket()) for _ in range(4)]
        people = stack.enter_context(ThreadPoolExecutor(2 * len(sockets)))
        for each in sockets:
            people.submit(each.send, data)
            people.submit(each.read_to_the_end)
