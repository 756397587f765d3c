"""Whose a request is can be told from its bytes, before they are parsed."""

from collections import OrderedDict

import pytest

from holdfast.web.scheduling.client_lines import ClientLines, is_whole
from tests.web.rig import FakeTurn


def client_of(request: bytes) -> bytes:
    turn = FakeTurn(lambda: False, lambda: None)
    return ClientLines(lambda: 0.0, turn, OrderedDict(), "B").client_of(request, b"place")


@pytest.mark.parametrize(
    ("request_", "client"),
    [
        (b"POST / HTTP/1.1\r\nCookie: a=1; B=x; c=2\r\n\r\n", b"B=x"),
        (b"POST / HTTP/1.1\r\ncookie: B=x\r\nContent-Length: 99\r\n\r\n[", b"B=x"),
        # More of it is to come.
        (b"POST / HTTP/1.1\r\nCookie: B=x\r\nHost:", b"B=x"),
        (b"POST / HTTP/1.1\r\nCookie: B=x", b"B=x"),
        (b"POST / HTTP/1.1\r\nCookie: B=x;", b"B=x"),
        (b"POST / HTTP/1.1\r\nHost: h\r\n", b"place"),
        # Without a cookie.
        (b'POST / HTTP/1.1\r\n\r\n[{"clientId" : "s", "data": {"clientId": "t"}}]', b"s"),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", b"place"),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"place"),
        # A body has no cookies.
        (b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nB=x; B=yz", b"place"),
        (b'POST / HTTP/1.1\r\n\r\n{"clientId": 1}', b"place"),
    ],
)
def test_a_client_is_known_by_its_cookie_or_its_session_or_else_its_place(
    request_: bytes, client: bytes
) -> None:
    assert client_of(request_) == client


@pytest.mark.parametrize(
    ("data", "is_whole_"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\n", False),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]", True),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n[", False),
    ],
)
def test_a_request_is_whole_with_its_body(data: bytes, *, is_whole_: bool) -> None:
    assert is_whole(data) is is_whole_
