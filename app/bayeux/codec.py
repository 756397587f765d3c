"""Bytes to messages and back. Whatever the bytes are: messages, or `RequestRefused`."""

import logging
from dataclasses import dataclass
from typing import Any

import orjson

from app.bayeux.errors import BayeuxError, RequestRefused
from app.bayeux.unfit import Salvage, Unfit
from app.delivery.json_text import is_deeper, to_json

Json = dict[str, Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Bounds of one request, whatever carried it."""

    bytes: int = 4 * 1024 * 1024
    messages: int = 5000
    depth: int = 512


def decode(body: bytes, limits: RequestLimits) -> list[Json]:
    """The messages of a request, an array of objects or a single one; some may be `Unfit`.

    Integers beyond 64 bits are the nearest doubles, as they are in browsers.
    """
    if len(body) > limits.bytes:
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


def encode_reply(reply: Json) -> bytes:
    """A reply as JSON; one that an extension made unfit for JSON is replaced: a reply is owed."""
    try:
        return to_json(reply)
    except (TypeError, ValueError, RecursionError):
        log.exception("a reply cannot be written as JSON")
        told = {name: reply[name] for name in ("channel", "id") if name in reply}
        error = BayeuxError.SERVER_FAULT.wire()
        return to_json({**told, "successful": False, "error": error})
