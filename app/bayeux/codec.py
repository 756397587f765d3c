"""Bytes to messages and back. Whatever the bytes are: messages, or `RequestRefused`."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.bayeux.errors import BayeuxError, RequestRefused
from app.bayeux.hooks import names_of
from app.bayeux.unfit import Salvage, Unfit
from app.delivery.json_text import is_deeper, to_json, to_strict_json

Json = dict[str, Any]

log = logging.getLogger(__name__)

# Their number is about that of the values, with arrays and objects counted twice, and tells best
# how long it takes to make and to look through what they separate.
_STRUCTURE = b"[]{},"
_CONTENT = bytes(set(range(256)).difference(_STRUCTURE, b'"'))


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Bounds of one request, whatever carried it."""

    bytes: int = 4 * 1024 * 1024
    messages: int = 5000
    depth: int = 512
    # An array or an object counts as two. To read so many takes some 20 ms.
    values: int = 75_000


def decode(body: bytes, limits: RequestLimits) -> list[Json]:
    """The messages of a request, an array of objects or a single one; some may be `Unfit`.

    Integers beyond 64 bits are the nearest doubles, as they are in browsers.
    """
    if len(body) > limits.bytes or _has_more_values(body, limits.values):
        raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
    try:
        decoded: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        decoded = Salvage(limits.messages, limits.depth).read(body)
    messages: list[Any] = decoded if isinstance(decoded, list) else [decoded]
    if not messages:
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    if len(messages) > limits.messages:
        raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
    for message in messages:
        if not isinstance(message, dict):
            raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    if len(body) > limits.depth and body.count(b"[") + body.count(b"{") > limits.depth:
        depth = limits.depth - isinstance(decoded, list)
        return [
            Unfit(message, BayeuxError.MESSAGE_TOO_DEEP) if is_deeper(message, depth) else message
            for message in messages
        ]
    return messages


def _has_more_values(body: bytes, most: int) -> bool:
    """Whether there is more than this to be made of the bytes."""
    if len(body) <= most or _weigh(body) <= most:
        return False
    # What stands in texts does not count. Without escapes, texts are what is between quotation
    # marks; a value has two texts at most: a name, and itself.
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    bare = body.translate(None, _CONTENT)
    if bare.count(b'"') <= 4 * most:
        bare = b"".join(bare.split(b'"')[::2])
    return len(bare) > most


def _weigh(body: bytes) -> int:
    return len(body) - len(body.translate(None, _STRUCTURE))


def encode_reply(reply: Json, authors: Sequence[object] = ()) -> bytes:
    """A reply as JSON; one that an extension made unfit for JSON is replaced: a reply is owed.

    Args:
        authors: The extensions that may have done so.
    """
    try:
        return to_strict_json(reply)
    except (TypeError, ValueError, RecursionError):
        names = names_of(authors)
        log.exception("a reply cannot be written as JSON%s", f": {names}" if names else "")
        told = {name: reply[name] for name in ("channel", "id") if name in reply}
        error = BayeuxError.SERVER_FAULT.wire()
        return to_json({**told, "successful": False, "error": error})
