"""Bodies that are too large, too deep, or different from what their headers say."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, MIB, Answer, request
from tests.abuse.conftest import FRONT_ENDS, MakeTarget
from tests.abuse.target import Target

DEEP = 1_000_000
MALFORMED = (400, "400::request_malformed")
TOO_LARGE = (413, f"413:max_request_size,{4 * MIB}:request_too_large")
INFLATED = (413, "413:inflated:request_too_large")
TOO_MANY_VALUES = (413, "413:max_values,65000:request_too_large")
UNSUPPORTED = (415, "415::media_type_unsupported")
CHUNKED = request(b"", {"Transfer-Encoding": "chunked"}).replace(b"Content-Length: 0\r\n", b"")


def verdict(answer: Answer) -> tuple[int, str]:
    """The status and the error; what is malformed, or how large a bomb is, does not count."""
    error = re.sub("^400:.*:", "400::", answer.error())
    return answer.status, re.sub(r"inflated to more than \d+ bytes", "inflated", error)


def send_and_hear(target: Target, data: bytes) -> tuple[int, str]:
    """The answer to a request that the server may refuse before it has been sent."""
    with target.wire() as wire:
        wire.send_until_refused(data)
        return verdict(wire.answer())


@pytest.mark.parametrize("size", [2**31, 2**63 - 1, 4 * MIB + 1])
def test_a_length_that_is_too_large_is_refused_at_once(size: int, either_front_end: Target) -> None:
    with either_front_end.bystander(), either_front_end.wire() as wire:
        wire.send(request(b"[", {"Content-Length": str(size)}))
        answer = wire.answer()
        assert verdict(answer) == TOO_LARGE
        assert answer.headers["connection"] == "close"


def test_a_body_without_end_is_refused_when_it_is_too_large(either_front_end: Target) -> None:
    with either_front_end.bystander(), either_front_end.wire() as wire:
        wire.send(CHUNKED)
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        sent = 0
        while not wire.has_answer() and sent < 64 * MIB:
            wire.send_until_refused(chunk)
            sent += len(chunk)
        assert verdict(wire.answer()) == TOO_LARGE
        assert sent < 64 * MIB
    assert either_front_end.growth_mib() < 30


@pytest.mark.parametrize("fast_lane", FRONT_ENDS, ids=["fast lane", "ordinary front end"])
def test_a_body_in_chunks_of_one_byte_costs_no_more_than_it_is_long(
    target_with: MakeTarget, fast_lane: bool
) -> None:
    # With a tenth of a processor, it takes 10 s until so many chunks are read.
    target = target_with(fast_lane=fast_lane, request_timeout=60_000)
    with target.bystander(), target.wire() as wire:
        wire.send_until_refused(CHUNKED + b"1\r\n \r\n" * 200_000 + b"0\r\n\r\n")
        assert verdict(wire.answer()) == MALFORMED
    assert target.growth_mib() < 30


def nested() -> Iterator[tuple[str, bytes]]:
    yield "arrays", b"[" * DEEP
    yield "closed arrays", b"[" * DEEP + b"]" * DEEP
    yield "objects", b'{"a":' * (DEEP // 2)
    yield "closed objects", b'[{"a":' + b'{"a":' * (DEEP // 4) + b"1" + b"}" * (DEEP // 4) + b"}]"
    yield "data", b'[{"channel":"/a","data":' + b"[" * DEEP + b"]" * DEEP + b"}]"
    yield "NaN", b'[{"channel":"/a","data":NaN}]'
    yield "Infinity", b'[{"channel":"/a","data":-Infinity}]'
    yield "a byte order mark", b'\xef\xbb\xbf[{"channel":"/a"}]'
    yield "a zero byte", b'[{"channel":"/a\0"}]'
    yield "half a character", b'[{"channel":"/\xc3"}]'
    yield "an overlong character", b'[{"channel":"/\xc0\xaf"}]'
    yield "a surrogate as bytes", b'[{"channel":"/\xed\xbf\xbf"}]'
    yield "a string without end", b'[{"channel":"' + b"a" * DEEP
    yield "two values", b"[{}][{}]"
    yield "a comma too many", b"[{},]"
    yield "nothing but commas", b"," * DEEP


BREAKERS = dict(nested())
ENDLESS = {
    *("arrays", "closed arrays", "objects", "closed objects", "data"),
    "nothing but commas",
}


@pytest.mark.parametrize("name", BREAKERS)
def test_json_that_would_break_a_parser_is_refused(name: str, target: Target) -> None:
    # A body with more values than allowed is not even parsed.
    expected = TOO_MANY_VALUES if name in ENDLESS else MALFORMED
    with target.bystander():
        assert send_and_hear(target, request(BREAKERS[name])) == expected
    assert target.growth_mib() < 60


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b'{"a":' * 600 + b"1" + b"}" * 600, "400::message_too_deep"),
        (b"1" * DEEP, "400::number_invalid"),
        (b"1e1000000", "400::number_invalid"),
        (b"[" + b"1" * 5000 + b"]", "400::number_invalid"),
        (b'"\\udfff"', "400::text_invalid"),
        (b'"' + b"\\ud800" * (DEEP // 4) + b'"', "400::text_invalid"),
    ],
    ids=["ext", "a long number", "a huge exponent", "many digits", "a surrogate", "surrogates"],
)
def test_a_message_with_values_that_cannot_be_forwarded_is_refused_alone(
    value: bytes, error: str, target: Target
) -> None:
    with target.bystander():
        body = b'[{"channel":"/a","id":"1","ext":%b},{"channel":"/b"}]' % value
        with target.wire() as wire:
            wire.send(request(body))
            refused, other = wire.answer().messages()
    assert refused == {"channel": "/a", "id": "1", "successful": False, "error": error}
    assert other["error"] == "402:send the clientId:client_id_missing"
    assert target.growth_mib() < 60


@pytest.mark.parametrize("arrays", [5, 10, 30, 200, 250, 500])
def test_arrays_within_arrays_arrive_and_do_no_harm(arrays: int, either_front_end: Target) -> None:
    data: Any = []
    for _ in range(arrays):
        data = [data, 1.7976931348623157e308]
    with either_front_end.bystander(), either_front_end.person() as person:

        def ask(message: dict[str, Any]) -> list[dict[str, Any]]:
            # Without orjson, to which it would do harm.
            person.send(request(json.dumps([message]).encode(), person.headers))
            return person.answer().messages()

        person.subscribe("/deep")
        for pad in range(0, 1000, 100):
            event, reply = ask(person.message("/deep", data=["x" * pad, data]))
            assert (event["data"], reply["successful"]) == (["x" * pad, data], True)
        (refused,) = ask(person.message("/meta/subscribe", subscription=[data] * 8))
        assert (refused["successful"], refused["subscription"]) == (False, [data] * 8)


def test_of_repeated_json_members_the_last_counts(target: Target) -> None:
    body = b'[{"channel":"/meta/handshake","channel":"/meta/connect","clientId":"x"}]'
    with target.wire() as wire:
        wire.send(request(body))
        assert verdict(wire.answer()) == (200, "402::session_unknown")


@pytest.mark.parametrize("codings", ["gzip, chunked", "identity,chunked", "x;q=1 , chunked"])
def test_a_coding_that_the_server_does_not_know_is_not_read(
    codings: str, either_front_end: Target
) -> None:
    head = CHUNKED.replace(b"chunked", codings.encode())
    with either_front_end.wire() as wire:
        wire.send(head + b"2\r\n[]\r\n0\r\n\r\n")
        assert verdict(wire.answer()) == (501, "501::transfer_coding_unsupported")


BOMB = gzip.compress(b" " * 64 * MIB)


@pytest.mark.parametrize(
    ("encoding", "body", "expected"),
    [
        ("gzip", BOMB, INFLATED),
        ("deflate", zlib.compress(b" " * 64 * MIB), INFLATED),
        ("gzip", gzip.compress(b" " * 3 * MIB) * 20, INFLATED),
        ("gzip", gzip.compress(BOMB), MALFORMED),
        ("gzip, gzip", gzip.compress(BOMB), UNSUPPORTED),
        ("gzip", gzip.compress(b"") * 10_000, MALFORMED),
        ("gzip", BOMB[: len(BOMB) // 2], INFLATED),
        ("gzip", b"\x1f\x8b\x08\x1c" + b"\xff" * 70_000, MALFORMED),
        ("gzip", b"nonsense", MALFORMED),
        ("gzip", b"", MALFORMED),
        ("compress", BOMB, UNSUPPORTED),
    ],
)
def test_a_decompression_bomb_is_refused_cheaply(
    encoding: str, body: bytes, expected: tuple[int, str], target: Target
) -> None:
    with target.bystander():
        data = request(body, {"Content-Encoding": encoding})
        assert send_and_hear(target, data) == expected
    assert target.growth_mib() < 30


def small_bomb(size: int) -> bytes:
    """A message that consists mostly of blanks."""
    return gzip.compress(b'[{"channel":"/a","data":1' + b" " * size + b"}]", 9)


def test_a_body_that_inflates_too_much_is_refused_before_it_is_decoded(target: Target) -> None:
    body = small_bomb(2 * MIB)
    assert len(body) < 8 * 1024
    with target.bystander():
        data = request(body, {"Content-Encoding": "gzip"})
        assert send_and_hear(target, data) == INFLATED
    assert target.growth_mib() < 20


def numbered(message: dict[str, Any], number: int) -> dict[str, Any]:
    return message | {"id": str(number)}


def test_batches_of_messages_that_are_alike_may_be_compressed(target: Target) -> None:
    with target.person() as person:
        message = person.message("/a", data={"user": "joe", "text": "hello " * 20})
        short = person.message("/a", data=1)
        for batch in ([numbered(message, n) for n in range(4300)], [short] * 5000):
            data = gzip.compress(orjson.dumps(batch), 9)
            person.send(request(data, {"Content-Encoding": "gzip", **person.headers}))
            replies = person.answer().messages()
            assert len(replies) == len(batch)
            assert all(reply["successful"] for reply in replies)


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_encodings_that_some_servers_know_are_refused(encoding: str, target: Target) -> None:
    data = request(b"nonsense", {"Content-Encoding": encoding})
    assert send_and_hear(target, data) == UNSUPPORTED


def bomb_of(size: int) -> bytes:
    """So many bytes of gzip, which hold about a thousand times as many spaces."""
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    begin, block = [stream.compress(b" " * MIB) + stream.flush(zlib.Z_FULL_FLUSH) for _ in range(2)]
    return begin + block * ((size - len(begin)) // len(block))


@pytest.mark.parametrize(("path", "expected"), [("/cometd", 413), ("/nowhere", 404), ("/", 405)])
def test_a_compressed_body_behind_a_refusal_is_not_inflated(
    path: str, expected: int, target: Target
) -> None:
    data = request(bomb_of(4 * MIB), {"Content-Encoding": "gzip"}, method=f"POST {path}")
    before_s = target.processor_s()
    with target.bystander(), target.wire() as wire:
        wire.send_until_refused(data)
        assert wire.answer().status == expected
    assert target.processor_s() - before_s < 1.0


def test_many_decompression_bombs_at_once_are_refused_cheaply(target: Target) -> None:
    with target.bystander():
        wires = [target.wire() for _ in range(10)]
        for wire in wires:
            wire.send_until_refused(request(BOMB, {"Content-Encoding": "gzip"}))
        assert {verdict(wire.answer()) for wire in wires} == {INFLATED}
        for wire in wires:
            wire.close()
    assert target.growth_mib() < 60


def test_a_batch_of_ten_thousand_messages_is_too_large(either_front_end: Target) -> None:
    with either_front_end.bystander(), either_front_end.person() as person:
        message = person.message("/a", data=1)
        assert verdict(person.ask(*[message] * 10_000)) == TOO_MANY_VALUES
        answer = person.ask(*[message] * 5_000)
        assert len(answer.messages()) == 5_000
        assert all(reply["successful"] for reply in answer.messages())


def test_a_batch_of_handshakes_creates_one_session(target: Target) -> None:
    before = target.metric("holdfast_sessions_created_total")
    with target.wire() as wire:
        wire.send(request(orjson.dumps([HANDSHAKE] * 1000)))
        replies = wire.answer().messages()
    assert [reply["successful"] for reply in replies] == [True] + [False] * 999
    assert target.metric("holdfast_sessions_created_total") == before + 1


def test_a_message_that_is_too_large_is_refused_alone(either_front_end: Target) -> None:
    with either_front_end.person() as person:
        person.subscribe("/a")
        answer = person.publish("/a", "x" * (2 * MIB))
        assert verdict(answer) == (200, "413:2097152:message_too_large")
        assert [each.get("data") for each in person.publish("/a", 1).messages()] == [1, None]


def test_forms_with_many_fields_are_malformed(target: Target) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    with target.bystander():
        for body in (
            b"a=b&" * 500_000,
            b"message=" * 500_000,
            b"&" * MIB,
            b"message=" + b"%41" * MIB,
        ):
            assert send_and_hear(target, request(body, form)) == MALFORMED


def test_a_thousand_headers_are_refused(either_front_end: Target) -> None:
    for headers in (
        {f"X-{n}": "y" for n in range(1000)},
        {"X": "y" * 100_000},
        {"Cookie": "a=b; " * 10_000},
    ):
        with either_front_end.wire() as wire:
            wire.send_until_refused(request(b"[]", headers))
            assert wire.answer().status == 400
