"""Heads of requests over which aiohttp 3.14 stumbles: they are malformed instead."""

import re
from typing import Any

# They are encoded again or repeated on their way, so they must be ASCII.
_REPEATED = ("Expect", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol")
_DATES = ("If-Modified-Since", "If-Unmodified-Since", "If-Range")
# No year and no second has as many digits; the calendar's integers have not.
_TOO_MANY_DIGITS = re.compile(r"[\d_]{9}")
_FILES = "/static/"
# What a file's name may have on the usual disks.
_LONGEST_NAME = 255


def is_odd(message: Any) -> bool:  # noqa: ANN401 - as aiohttp's parser gives it
    """Whether such a head is to be refused."""
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
