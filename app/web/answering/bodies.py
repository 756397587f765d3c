"""Reads bodies of requests on the aiohttp front end, bounded in size and time."""

import asyncio
import codecs
from encodings.aliases import aliases

from aiohttp import ClientError, web
from yarl import query_to_pairs

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.unfit import MAX_SIZE, malformed, too_large
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.http.encodings import DECODERS, Decoder, encoding_of, is_transfer_known
from holdfast.web.scheduling.intake import Intake

# What was read of a body that is not complete.
READ_PARTS = web.RequestKey("read_parts", list[bytes])
_FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 1000
# A body may inflate to the first limit, or to this multiple of its size if that is more. A batch of
# similar messages compresses 50-fold. 1000-fold is a decompression bomb, which costs its sender few
# bytes and the server much time.
_MOST_INFLATED = 512 * 1024
_MOST_RATIO = 100
# Text encodings that are cheap to decode, by Python's names.
_CODECS = frozenset(
    ["utf_8", "ascii", "utf_16", "utf_16_le", "utf_16_be", "koi8_r", "koi8_u", "latin_1"]
    + [f"iso8859_{part}" for part in range(2, 17) if part != 12]
    + [f"cp125{page}" for page in range(9)]
)
# An allow list: for any other name Python searches the disk, and caches the result forever.
_CHARSETS = {name: name for name in _CODECS} | {
    alias: name for alias, name in aliases.items() if name in _CODECS
}
for _codec in _CODECS:
    # Import the codec now, not during the first request that needs it.
    codecs.lookup(_codec)


async def read_messages(request: web.Request, endpoint: Endpoint, network: str) -> bytes:
    """Return the request's messages, also from a form, as UTF-8. Raises `RequestRefused`."""
    body = await read_body(request, endpoint, network)
    return _messages_of_form(body) if request.content_type == _FORM else body


async def read_body(request: web.Request, endpoint: Endpoint, network: str) -> bytes:
    """Return the request's body as UTF-8; raises `RequestRefused`."""
    decoder = _decoder_of(request)
    limit = endpoint.options.max_request_size
    if request.content_length is not None and request.content_length > limit:
        raise too_large(MAX_SIZE, limit)
    # Headers and body share one time limit. It is the event loop's: the clock of the core falls
    # behind when the process does not run.
    began_at = getattr(request.protocol, "began_at", None) or asyncio.get_running_loop().time()
    try:
        async with endpoint.endings.timeout_at(began_at + endpoint.options.request_timeout_s):
            body = await _read(request, decoder, limit, endpoint.intake, network)
    except TimeoutError:
        raise RequestRefused(ErrorReply.REQUEST_TIMEOUT) from None
    except (web.RequestPayloadError, ClientError):
        raise malformed("a body that is incomplete or cut wrongly") from None
    except ValueError:
        raise malformed("a body that is not in its Content-Encoding") from None
    return to_utf8(body, request.charset)


def _decoder_of(request: web.Request) -> Decoder | None:
    if not is_transfer_known(request.headers):
        raise RequestRefused(ErrorReply.TRANSFER_CODING_UNSUPPORTED)
    encoding = encoding_of(request.headers)
    is_known = encoding == "identity" or encoding in DECODERS
    if not is_known or request.content_type.startswith("multipart/"):
        raise RequestRefused(ErrorReply.MEDIA_TYPE_UNSUPPORTED)
    return None if encoding == "identity" else DECODERS[encoding]()


async def _read(
    request: web.Request, decoder: Decoder | None, limit: int, intake: Intake, network: str
) -> bytes:
    """Read and decode the body. Stops as soon as it is too large, so no bomb is inflated."""
    held = size = 0
    parts: list[bytes] = []
    pieces: list[bytes] = []
    if not request.content.is_eof():
        request[READ_PARTS] = parts
    try:
        async for part in request.content.iter_any():
            if held + len(part) > limit:
                raise too_large(MAX_SIZE, limit)
            intake.take(len(part), network)
            held += len(part)
            parts.append(part)
        if decoder is None:
            return b"".join(parts)
        # Checked only once the body is complete: an unfinished body holds no more than was sent.
        limit = min(limit, max(_MOST_INFLATED, _MOST_RATIO * held))
        for part in parts:
            for piece in decoder.pieces(part):
                size += len(piece)
                if size > limit:
                    why = f"inflated to more than {limit} bytes"
                    raise RequestRefused(ErrorReply.REQUEST_TOO_LARGE, why)
                intake.take(len(piece), network)
                held += len(piece)
                pieces.append(piece)
                await asyncio.sleep(0)
        decoder.end()
        return b"".join(pieces)
    finally:
        intake.give_back(held, network)


def to_utf8(body: bytes, charset: str | None) -> bytes:
    """Transcode to UTF-8; raises `RequestRefused`."""
    if charset is None or charset.lower() in ("utf-8", "utf8"):
        return body
    name = _CHARSETS.get(charset.lower().replace("-", "_"))
    if name is None:
        raise RequestRefused(ErrorReply.MEDIA_TYPE_UNSUPPORTED)
    try:
        return body.decode(name).encode()
    except UnicodeDecodeError as error:
        raise malformed(f"not in the charset of its Content-Type at byte {error.start}") from None


def _messages_of_form(body: bytes) -> bytes:
    if body.lstrip()[:1] in (b"[", b"{"):
        raise malformed("JSON with the Content-Type of a form")
    try:
        fields = query_to_pairs(body.decode(), max_fields=_MAX_FIELDS)
    except ValueError:
        raise malformed(f"a form that is not UTF-8 or has more than {_MAX_FIELDS} fields") from None
    return concatenate([value for name, value in fields if name == "message"])


def concatenate(texts: list[str]) -> bytes:
    """Join several `message` parameters, each an object or an array, into one array."""
    if not texts:
        raise malformed("no field named message")
    if len(texts) == 1:
        return texts[0].encode()
    inner = [text.strip() for text in texts]
    inner = [text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text for text in inner]
    return ("[" + ",".join(inner) + "]").encode()
