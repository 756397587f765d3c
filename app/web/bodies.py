"""Reading the body of an ordinary request: bounded in size and in time, whatever its encoding."""

import asyncio
import codecs
from encodings.aliases import aliases

from aiohttp import ClientError, web
from yarl import query_to_pairs

from app.bayeux.errors import BayeuxError, RequestRefused
from app.web.encodings import DECODERS, Decoder, encoding_of, is_transfer_known
from app.web.endpoint import Endpoint
from app.web.intake import Intake

_FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 1000
# What a body may be inflated to: so much in any case, and more if it is so many times its size at
# most. A batch of messages that are alike shrinks to a fiftieth; what shrinks to a thousandth is a
# bomb, and takes everybody's time for the few bytes that it costs its sender.
_MOST_INFLATED = 512 * 1024
_MOST_RATIO = 100
# Text encodings that are cheap to decode, in Python's spelling, which knows others that are not.
_CODECS = frozenset(
    ["utf_8", "ascii", "utf_16", "utf_16_le", "utf_16_be", "koi8_r", "koi8_u", "latin_1"]
    + [f"iso8859_{part}" for part in range(2, 17) if part != 12]
    + [f"cp125{page}" for page in range(9)]
)
# All that a client can ask for: Python looks on disk for other names, and remembers each for ever.
_CHARSETS = {name: name for name in _CODECS} | {
    alias: name for alias, name in aliases.items() if name in _CODECS
}
for _codec in _CODECS:
    # Loaded now, not in the first request that needs it.
    codecs.lookup(_codec)


async def read_body(request: web.Request, endpoint: Endpoint) -> bytes:
    """The request's messages as UTF-8 JSON; raises `RequestRefused`."""
    decoder = _decoder_of(request)
    limit = endpoint.options.max_request_size
    if request.content_length is not None and request.content_length > limit:
        raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
    # The headers came out of the same allowance of time.
    began_at = getattr(request.protocol, "began_at", None) or endpoint.clock()
    try:
        async with asyncio.timeout_at(began_at + endpoint.options.request_timeout_s):
            body = await _read(request, decoder, limit, endpoint.intake)
    except TimeoutError:
        raise RequestRefused(BayeuxError.REQUEST_TIMEOUT) from None
    except (web.RequestPayloadError, ClientError, ValueError):
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED) from None
    body = to_utf8(body, request.charset)
    return _messages_of_form(body) if request.content_type == _FORM else body


def _decoder_of(request: web.Request) -> Decoder | None:
    if not is_transfer_known(request.headers):
        raise RequestRefused(BayeuxError.TRANSFER_CODING_UNSUPPORTED)
    encoding = encoding_of(request.headers)
    is_known = encoding == "identity" or encoding in DECODERS
    if not is_known or request.content_type.startswith("multipart/"):
        raise RequestRefused(BayeuxError.MEDIA_TYPE_UNSUPPORTED)
    return None if encoding == "identity" else DECODERS[encoding]()


async def _read(request: web.Request, decoder: Decoder | None, limit: int, intake: Intake) -> bytes:
    """The decoded body; given up as soon as it is too large, so a bomb is never unpacked."""
    held = size = 0
    parts, pieces = [], []
    try:
        async for part in request.content.iter_any():
            if held + len(part) > limit:
                raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
            intake.take(len(part))
            held += len(part)
            parts.append(part)
        if decoder is None:
            return b"".join(parts)
        # Only now that all of it is here: whoever sends no end holds no more than was sent.
        limit = min(limit, max(_MOST_INFLATED, _MOST_RATIO * held))
        for part in parts:
            for piece in decoder.pieces(part):
                size += len(piece)
                if size > limit:
                    raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
                intake.take(len(piece))
                held += len(piece)
                pieces.append(piece)
                await asyncio.sleep(0)
        decoder.end()
        return b"".join(pieces)
    finally:
        intake.give_back(held)


def to_utf8(body: bytes, charset: str | None) -> bytes:
    """The same text as UTF-8; raises `RequestRefused`."""
    if charset is None or charset.lower() in ("utf-8", "utf8"):
        return body
    name = _CHARSETS.get(charset.lower().replace("-", "_"))
    if name is None:
        raise RequestRefused(BayeuxError.MEDIA_TYPE_UNSUPPORTED)
    try:
        return body.decode(name).encode()
    except UnicodeError:
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED) from None


def _messages_of_form(body: bytes) -> bytes:
    try:
        fields = query_to_pairs(body.decode(), max_fields=_MAX_FIELDS)
    except ValueError:
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED) from None
    return concatenate([value for name, value in fields if name == "message"])


def concatenate(texts: list[str]) -> bytes:
    """Several `message` parameters, each an object or an array, as one array."""
    if not texts:
        raise RequestRefused(BayeuxError.REQUEST_MALFORMED)
    if len(texts) == 1:
        return texts[0].encode()
    inner = [text.strip() for text in texts]
    inner = [text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text for text in inner]
    return ("[" + ",".join(inner) + "]").encode()
