"""Detects heads of requests that aiohttp 3.14 fails on; they are refused as malformed."""

import re
from typing import Any

from aiohttp.http_exceptions import BadHttpMessage

from holdfast.web.http.aiohttp_parts import ErrInfo

# aiohttp encodes or repeats these headers, so they must be ASCII.
_REPEATED = ("Expect", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol")
_DATES = ("If-Modified-Since", "If-Unmodified-Since", "If-Range")
# Longer numbers in dates overflow Python's calendar; no date needs them.
_TOO_MANY_DIGITS = re.compile(r"[\d_]{9}")
_FILES = "/static/"
# The longest file name on common file systems.
_LONGEST_NAME = 255


def is_odd(message: Any) -> bool:  # noqa: ANN401 - as aiohttp's parser gives it
    """Return whether to refuse this head."""
    headers = message.headers
    for name in _REPEATED:
        for value in headers.getall(name, ()):
            if not value.isascii():
                return True
    for name in _DATES:
        for value in headers.getall(name, ()):
            if _TOO_MANY_DIGITS.search(value):
                return True
    path: str = message.url.path
    return path.startswith(_FILES) and len(path.encode(errors="surrogatepass")) > _LONGEST_NAME


def checked(message: Any) -> Any:  # noqa: ANN401
    """Return the message, or the parser's error if its head is odd."""
    if type(message) is ErrInfo or not is_odd(message):
        return message
    return ErrInfo(status=400, exc=BadHttpMessage("an odd head"), message="an odd head")
