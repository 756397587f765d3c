"""Bytes to messages and back. Whatever the bytes are: messages, or `RequestRefused`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from app.bayeux.errors import BayeuxError, RequestRefused

Json = dict[str, Any]

# Every digit looks alike, so that a long run of digits is found without a regular expression.
_DIGITS_ALIKE = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_LONG_NUMBER = b"0" * 19


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Bounds of one request, whatever carried it."""

    bytes: int = 4 * 1024 * 1024
    messages: int = 5000
    depth: int = 512


def decode(body: bytes, limits: RequestLimits) -> list[Json]:
    """The messages of a request: an array of objects, or a single object."""
    if len(body) > limits.bytes:
        raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
    decoded = _parse(body, limits.depth)
    messages = decoded if type(decoded) is list else [decoded]
    if not messages:
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    if len(messages) > limits.messages:
        raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
    for message in messages:
        if type(message) is not dict:
            raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    return messages


def _parse(body: bytes, depth: int) -> Any:
    # orjson turns an integer beyond 64 bits into a float; such a number would change on its way.
    if _LONG_NUMBER in body.translate(_DIGITS_ALIKE):
        _refuse_huge_integers(body)
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED) from error
    if len(body) > depth and body.count(b"[") + body.count(b"{") > depth < _depth(decoded):
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    return decoded


def _refuse_huge_integers(body: bytes) -> None:
    try:
        json.loads(body, parse_int=_check_integer)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED) from error


def _check_integer(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
        raise ValueError("integer beyond 64 bits")
    return 0


def _depth(decoded: Any) -> int:
    """How deep arrays and objects are nested; never recurses."""
    depth, level = 0, [decoded]
    while level := [value for value in level if isinstance(value, (dict, list))]:
        depth += 1
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return depth


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as JSON."""
    try:
        return orjson.dumps(message)
    except orjson.JSONEncodeError:
        # orjson reads deeper than it writes; what was read within our limits is written too.
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
