"""A head that comes again is recognised byte for byte, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire.caller import NO_SPEAKER
from holdfast.web.http.known_head import KnownHead, learn, learn_beginning

BEFORE = b"POST /cometd HTTP/1.1\r\nHost: h\r\nContent-Length: "
AFTER = b"\r\nCookie: a=b\r\n\r\n"


def request(body: bytes, length: bytes | None = None) -> bytes:
    return BEFORE + (b"%d" % len(body) if length is None else length) + AFTER + body


def known(body: bytes = b"hello") -> KnownHead:
    head = learn(request(body), body, NO_SPEAKER, {})
    assert head is not None
    return head


@given(st.binary(min_size=1, max_size=2000))
def test_the_body_behind_a_known_head_is_found(body: bytes) -> None:
    assert known().body_of(request(body)) == body


@given(st.binary(min_size=1, max_size=300), st.data())
def test_an_incomplete_request_is_not_recognised(body: bytes, data: st.DataObject) -> None:
    whole = request(body)
    size = data.draw(st.integers(min_value=0, max_value=len(whole) - 1))
    assert known().body_of(whole[:size]) is None


@given(st.binary(min_size=1, max_size=300), st.binary(min_size=1, max_size=30))
def test_a_request_with_more_bytes_behind_it_is_not_recognised(body: bytes, more: bytes) -> None:
    assert known().body_of(request(body) + more) is None


@given(st.integers(min_value=0), st.binary(min_size=1, max_size=2))
def test_a_head_that_differs_in_one_byte_is_not_recognised(at: int, other: bytes) -> None:
    whole = request(b"hello")
    at %= len(whole) - len(b"hello")
    changed = whole[:at] + other + whole[at + 1 :]
    found = known().body_of(changed)
    assert found is None or changed == whole


@pytest.mark.parametrize(
    "length", [b"", b"-5", b"+5", b" 5", b"5 ", b"0x5", b"5,5", b"5\r", b"5\n", b"\xb2", b"6", b"4"]
)
def test_a_request_with_an_odd_or_wrong_length_is_not_recognised(length: bytes) -> None:
    assert known().body_of(request(b"hello", length)) is None


def test_a_length_with_too_many_digits_is_left_to_the_parser() -> None:
    assert known().body_of(request(b"hello", b"0000000005")) is None


def test_a_request_without_a_body_is_left_to_the_parser() -> None:
    assert known().body_of(request(b"")) is None


def test_a_request_that_holds_a_request_is_recognised_as_the_outer_one() -> None:
    inner = request(b"hello")
    assert known().body_of(request(inner)) == inner


@pytest.mark.parametrize(
    "data",
    [
        request(b"hello") + b"P",
        b"\r\n\r\n" + request(b"hello"),
        request(b"hello", b"6"),
        b"POST / HTTP/1.1\r\nHost: h\r\n\r\nhello",
        request(b"hello").replace(b"\r\nCookie", b"\r\nContent-Length: 5\r\nCookie"),
        request(b"hello").replace(b"Host: h", b"X: " + b"x" * 2048),
        request(b"hello").replace(b"Content-Length: ", b"Content-Length:\x0b"),
        request(b"hello").replace(b"\r\n", b"\n"),
        request(b"hello", b"5 "),
        request(b"hello").replace(b"Content-Length:", b"X: \r\n Content-Length:"),
    ],
)
def test_a_head_that_could_mean_something_else_is_not_learnt(data: bytes) -> None:
    assert learn(data, b"hello", NO_SPEAKER, {}) is None


@pytest.mark.parametrize("name", [b"Content-Length: ", b"content-length:", b"CONTENT-LENGTH:\t "])
def test_the_length_is_found_however_it_is_spelt(name: bytes) -> None:
    data = request(b"hello").replace(b"Content-Length: ", name)
    head = learn(data, b"hello", NO_SPEAKER, {})
    assert head is not None
    assert head.body_of(data) == b"hello"


def test_the_length_may_be_the_last_header() -> None:
    data = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
    head = learn(data, b"hello", NO_SPEAKER, {})
    assert head is not None
    assert head.body_of(data.replace(b"5\r", b"7\r") + b"o!") == b"helloo!"


@given(st.binary(max_size=300), st.integers(0, 10**9 - 1))
def test_a_request_of_which_only_the_beginning_has_arrived_is_recognised(
    body: bytes, length: int
) -> None:
    assert known().begins(request(body, b"%d" % length))


@pytest.mark.parametrize(
    "head",
    [
        request(b"")[:-1],
        request(b"").replace(b"/cometd", b"/comet"),
        request(b"").replace(b"a=b", b"a=c"),
        request(b"").replace(AFTER, b"\r\nAccept: */*" + AFTER),
        BEFORE,
        b"",
    ],
)
def test_a_beginning_with_another_head_is_not_recognised(head: bytes) -> None:
    assert not known().begins(head)


def test_a_head_whose_body_is_still_to_come_is_learned() -> None:
    head = learn_beginning(request(b"", b"5") + b"hel")
    assert head is not None
    assert head.begins(request(b"other", b"17"))
    assert not head.begins(request(b"").replace(b"a=b", b"a=c"))


@pytest.mark.parametrize("data", [b"", BEFORE, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"])
def test_a_head_without_an_end_or_a_length_is_not_learned(data: bytes) -> None:
    assert learn_beginning(data) is None
