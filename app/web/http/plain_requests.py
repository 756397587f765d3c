"""Which requests the fast lane answers itself: complete plain POSTs to a Bayeux path."""

from collections.abc import Container
from typing import Any

from aiohttp.streams import StreamReader

from holdfast.web.http.aiohttp_parts import ErrInfo
from holdfast.web.http.hosts import Hosts

# Content types that need no parsing: JSON or text in UTF-8, or none at all.
_PLAIN_TYPES = frozenset(
    [
        None,
        "application/json",
        "application/json;charset=UTF-8",
        "application/json;charset=utf-8",
        "application/json; charset=UTF-8",
        "application/json; charset=utf-8",
        "text/plain;charset=UTF-8",
        "text/json",
    ]
)


def is_plain(message: Any, payload: Any, paths: Container[str], hosts: Hosts) -> bool:
    """Return whether this is a complete plain POST; aiohttp handles all other requests."""
    if type(payload) is not StreamReader or not payload._eof or len(payload._buffer) != 1:
        return False
    if type(message) is ErrInfo or message.method != "POST" or message.path not in paths:
        return False
    if message.should_close or message.chunked or message.compression or message.upgrade:
        return False
    headers = message.headers
    if message.version[1] != 1 or headers.get("Content-Type") not in _PLAIN_TYPES:
        return False
    if not hosts.are_ours(headers.get("Host")):
        return False
    return "Expect" not in headers and "Content-Encoding" not in headers
