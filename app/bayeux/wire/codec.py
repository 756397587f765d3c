"""Decodes requests into messages and encodes replies."""

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import orjson

from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.bayeux.wire.hooks import names_of
from holdfast.bayeux.wire.unfit import MAX_SIZE, Salvage, Unfit, malformed, no_object, too_large
from holdfast.delivery.basics.json_text import is_deeper, to_json, to_strict_json
from holdfast.settings.limits import LimitSettings

Json = dict[str, Any]

# Shared: a new dictionary for each held connect would make the garbage collector work more often.
NO_EXT: Final[Mapping[str, Any]] = MappingProxyType({})

log = logging.getLogger(__name__)

# The number of these bytes approximates the number of values and names, with arrays and objects
# counted twice: the best cheap estimate of the time that decoding and checking take. A name takes
# longer than most values.
_STRUCTURE: Final = b"[]{},:"
_CONTENT: Final = bytes(set(range(256)).difference(_STRUCTURE, b'"'))


class RequestLimits:
    """Limits of one request, on any transport, read once."""

    def __init__(self, settings: LimitSettings) -> None:
        self.bytes = settings.max_request_size
        self.messages = settings.max_batch
        self.depth = settings.max_depth
        # Reading the default number takes about 15 ms.
        self.values = settings.max_values


def decode(body: bytes, limits: RequestLimits) -> list[Json]:
    """Decode a request, a single message or an array. Invalid messages become `Unfit`.

    Integers beyond 64 bits become the nearest doubles, as in browsers. Raises `RequestRefused`.
    """
    found = read(body, limits)
    if isinstance(found, Salvage):
        while not found.go_on():
            pass
        return found.messages
    return found


def read(body: bytes, limits: RequestLimits) -> list[Json] | Salvage:
    """Decode a request, or return a `Salvage` if some of its messages may be unfit."""
    if len(body) > limits.bytes:
        raise too_large(MAX_SIZE, limits.bytes)
    if _has_more_values(body, limits.values):
        raise too_large("max_values", limits.values)
    try:
        decoded: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return Salvage(body, limits.messages, limits.depth)
    messages: list[Any] = decoded if isinstance(decoded, list) else [decoded]
    if not messages:
        raise malformed("no messages")
    if len(messages) > limits.messages:
        raise too_large("max_batch", limits.messages)
    for message in messages:
        if not isinstance(message, dict):
            raise malformed(no_object(messages.index(message) + 1))
    if len(body) > limits.depth and body.count(b"[") + body.count(b"{") > limits.depth:
        depth = limits.depth - isinstance(decoded, list)
        return [
            Unfit(message, ErrorReply.MESSAGE_TOO_DEEP) if is_deeper(message, depth) else message
            for message in messages
        ]
    return messages


def _has_more_values(body: bytes, most: int) -> bool:
    """Return whether the bytes encode more than `most` values and names."""
    if len(body) <= most or weigh(body) <= most:
        return False
    # Structure inside strings does not count. Without escapes, quotes delimit strings.
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    bare = body.translate(None, _CONTENT)
    if bare.count(b'"') <= 2 * most:
        bare = b"".join(bare.split(b'"')[::2])
    return len(bare) > most


def weigh(body: bytes) -> int:
    """Return at once how many values and names a body has at most."""
    return len(body) - len(body.translate(None, _STRUCTURE))


def ext_of(message: Json) -> Mapping[str, Any]:
    """Return the `ext` of a message; an empty one if it has none, or one that is no object."""
    ext = message.get("ext")
    return ext if isinstance(ext, dict) else NO_EXT


def encode_reply(reply: Json, authors: Sequence[object] = ()) -> bytes:
    """Encode a reply. A reply that an extension made unencodable is replaced.

    Args:
        authors: The extensions that may have changed the reply, for the log.
    """
    try:
        return to_strict_json(reply)
    except (TypeError, ValueError, RecursionError):
        names = names_of(authors)
        log.exception("a reply could not be encoded as JSON%s", f": {names}" if names else "")
        named = {name: reply[name] for name in ("channel", "id") if name in reply}
        error = ErrorReply.SERVER_FAULT.wire()
        return to_json({**named, "successful": False, "error": error})
