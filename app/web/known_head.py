"""Requests whose head is known: it was seen before on this connection, byte for byte.

A client repeats the head of its requests; only the number behind Content-Length changes. What
aiohttp's parser has made of a head once it would make of the same bytes again, so they need not be
parsed again. Nothing is ever concluded from a head that the parser has not accepted.
"""

import re
from typing import NamedTuple

from app.bayeux.caller import UNKNOWN, Caller
from app.bayeux.exchange import Source

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})(?=\r\n)", re.IGNORECASE)
_END = b"\r\n\r\n"
# Longer heads are rare, and remembering them costs memory for as long as the connection lives.
_LONGEST = 2048


class Speaker(NamedTuple):
    """What a head says about who speaks."""

    browsers: tuple[str, ...]
    origin: str | None
    host: str | None
    is_foreign: bool
    is_cookieless: bool = False
    caller: Caller = UNKNOWN
    source: Source = Source.PROGRAM


class KnownHead:
    """A head in two parts, before and behind the number that is the body's length."""

    __slots__ = ("_after", "_before", "_length", "_size", "_size_of_last", "_whole", "speaker")

    def __init__(self, before: bytes, after: bytes, speaker: Speaker) -> None:
        self._before = before
        self._after = after
        self._size = len(before) + len(after)
        self.speaker = speaker
        # Most requests of a connection are as long as the one before.
        self._size_of_last = -1
        self._length = 0
        self._whole = b""

    def body_of(self, data: bytes) -> bytes | None:
        """The body, if the data are this head and a complete body, and nothing else."""
        if len(data) == self._size_of_last:
            return data[-self._length :] if data.startswith(self._whole) else None
        # The size of the data says what the number must be: with its own digits it is the rest.
        rest = len(data) - self._size
        digits = len(str(rest - len(str(rest)) + 1))
        length = rest - digits
        if length <= 0 or len(str(length)) != digits:
            return None
        whole = b"%b%d%b" % (self._before, length, self._after)
        if not data.startswith(whole):
            return None
        self._size_of_last, self._length, self._whole = len(data), length, whole
        return data[-length:]


def learn(data: bytes, body: bytes, speaker: Speaker) -> KnownHead | None:
    """The head of a request that the parser found in exactly these data, with this body.

    None if the data are more than that request: then the parser has begun with another one.
    """
    size = len(data) - len(body)
    if size > _LONGEST or data.find(_END) != size - len(_END):
        return None
    head = data[:size]
    found = _LENGTH.search(head)
    if found is None or int(found[1]) != len(body) or _LENGTH.search(head, found.end()):
        return None
    return KnownHead(head[: found.start(1)], head[found.end(1) :], speaker)
