"""Requests as bytes: valid, odd and invalid ones."""

import gzip
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count

import orjson

from holdfast.bayeux.wire.client_ids import ClientIds
from tests.unit.bayeux.numbered_bytes import numbered_bytes


def client_ids(first: int = 1) -> ClientIds:
    """Ids as a rig makes them, whose random bits are numbers from this one on."""
    return ClientIds(bytes(32), partial(numbered_bytes, count(first)), at_once=1)


def ids_of_session(number: int) -> tuple[str, str]:
    """The client id of the session with this number in a rig, and its cookie."""
    ids = client_ids(2 * number - 1)
    client_id = ids.new()
    return client_id, f"BAYEUX_BROWSER={ids.new(ids.bucket_in(client_id))}"


CLIENT_ID, COOKIE = ids_of_session(1)

HANDSHAKE = {
    "channel": "/meta/handshake",
    "version": "1.0",
    "supportedConnectionTypes": ["long-polling"],
    "id": "1",
}
CONNECT = {
    "channel": "/meta/connect",
    "clientId": CLIENT_ID,
    "connectionType": "long-polling",
    "id": "2",
}
SUBSCRIBE = {
    "channel": "/meta/subscribe",
    "clientId": CLIENT_ID,
    "subscription": "/news",
    "id": "3",
}
PUBLISH = {"channel": "/news", "clientId": CLIENT_ID, "data": "hello", "id": "4"}
DISCONNECT = {"channel": "/meta/disconnect", "clientId": CLIENT_ID, "id": "5"}


def encode(*messages: Mapping[str, object]) -> bytes:
    return orjson.dumps(messages)


def post(
    body: bytes,
    headers: Sequence[str] = (),
    *,
    path: str = "/cometd",
    host: str = "Host: holdfast.test",
    length: str | None = None,
    version: str = "HTTP/1.1",
) -> bytes:
    """A POST with these header lines, then that of its length."""
    lines = [f"POST {path} {version}", host, *headers]
    lines.append(f"Content-Length: {len(body)}" if length is None else length)
    return b"\r\n".join(line.encode("latin-1") for line in lines if line) + b"\r\n\r\n" + body


def post_messages(*messages: Mapping[str, object], cookie: str = COOKIE) -> bytes:
    """A POST with these messages, as a browser sends it."""
    headers = ["Content-Type: application/json;charset=UTF-8"]
    if cookie:
        headers.append(f"Cookie: {cookie}")
    return post(encode(*messages), headers)


def chunked(body: bytes, size: int, headers: Sequence[str] = (), trailer: bytes = b"") -> bytes:
    """A POST without a length."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    coded = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    coded += b"0\r\n" + trailer + b"\r\n"
    return post(coded, headers, length="Transfer-Encoding: chunked")


def deflated(body: bytes) -> bytes:
    return zlib.compress(body)


def gzipped(body: bytes, *, layers: int = 1) -> bytes:
    for _ in range(layers):
        body = gzip.compress(body, mtime=0)
    return body
