"""Requests with only a connect are told from others before they are read: they can wait."""

import pytest

from holdfast.web.http.lone_requests import is_lone_connect

CONNECT = b'{"channel":"/meta/connect","clientId":"c"}'
PUBLISH = b'{"channel":"/a","data":"/meta/connect"}'


@pytest.mark.parametrize(
    "data",
    [
        b"[%b]" % CONNECT,
        b'POST /cometd HTTP/1.1\r\n\r\n[{ "id": "1", "channel" :\t"/meta/connect" }]',
        CONNECT.replace(b":", b" : "),
    ],
)
def test_a_single_connect_is_one_however_it_is_written(data: bytes) -> None:
    assert is_lone_connect(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"[%b]" % PUBLISH,
        b"[%b,%b]" % (CONNECT, CONNECT),
        b"[%b,%b]" % (PUBLISH, CONNECT),
        b"[%b,%b]" % (CONNECT, PUBLISH),
        b'[{"clientId":"/meta/connect"}]',
        b'"/meta/connect"',
        CONNECT.replace(b"connect", b"connects"),
    ],
)
def test_anything_else_is_none(data: bytes) -> None:
    assert not is_lone_connect(data)
