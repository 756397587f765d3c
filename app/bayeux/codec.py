"""Bytes to messages and back. Whatever the bytes are: messages, or `RequestRefused`."""

import logging
import re
from dataclasses import dataclass
from typing import Any

import orjson

from app.bayeux.errors import BayeuxError, RequestRefused
from app.delivery.json_text import is_deeper, to_json

Json = dict[str, Any]

log = logging.getLogger(__name__)

# Every digit looks alike, so that a long run of digits is found without a regular expression.
_DIGITS_ALIKE = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_LONG_NUMBER = b"0" * 19
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_LONG_INTEGER = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}+(?![.eE])")


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
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED) from error
    if _LONG_NUMBER in body.translate(_DIGITS_ALIKE) and _has_huge_integer(body):
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    if len(body) > limits.depth and _is_deeper(body, decoded, limits.depth):
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    messages = decoded if type(decoded) is list else [decoded]
    if not messages:
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    if len(messages) > limits.messages:
        raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
    for message in messages:
        if type(message) is not dict:
            raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    return messages


def _has_huge_integer(body: bytes) -> bool:
    """Whether orjson made a float of an integer beyond 64 bits: it would change on its way."""
    for digits in _LONG_INTEGER.findall(_STRING.sub(b"", body)):
        if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
            return True
    return False


def _is_deeper(body: bytes, decoded: object, depth: int) -> bool:
    """Whether arrays and objects are nested deeper than this."""
    return body.count(b"[") + body.count(b"{") > depth and is_deeper(decoded, depth)


def encode_reply(reply: Json) -> bytes:
    """A reply as JSON; one that an extension made unfit for JSON is replaced: a reply is owed."""
    try:
        return to_json(reply)
    except (TypeError, ValueError, RecursionError):
        log.exception("a reply cannot be written as JSON")
        told = {name: reply[name] for name in ("channel", "id") if name in reply}
        error = BayeuxError.SERVER_FAULT.wire()
        return to_json({**told, "successful": False, "error": error})
