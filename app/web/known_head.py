"""Requests whose head is known: it was seen before on this connection, byte for byte.

A client repeats the head of its requests; only the number behind Content-Length changes. What
aiohttp's parser has made of a head once it would make of the same bytes again, so they need not be
parsed again. Nothing is ever concluded from a head that the parser has not accepted.
"""

import re

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})(?=\r\n)", re.IGNORECASE)
_END = b"\r\n\r\n"
# Longer heads are rare, and remembering them costs memory for as long as the connection lives.
_LONGEST = 2048


class KnownHead:
    """A head in two parts: before and behind the number that is the body's length."""

    __slots__ = ("_after", "_before", "_size")

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before = before
        self._after = after
        self._size = len(before) + len(after)

    def body_of(self, data: bytes) -> bytes | None:
        """The body, if the data are this head and a complete body, and nothing else."""
        # The size of the data says what the number must be: with its own digits it is the rest.
        rest = len(data) - self._size
        digits = len(str(rest - len(str(rest)) + 1))
        length = rest - digits
        if length <= 0 or len(str(length)) != digits:
            return None
        if data.startswith(b"%b%d%b" % (self._before, length, self._after)):
            return data[-length:]
        return None


def learn(data: bytes, body: bytes) -> KnownHead | None:
    """The head of a request that the parser found in exactly these data, with this body.

    None if the data are more than that request: then the parser has begun with another one.
    """
    head_size = len(data) - len(body)
    if head_size > _LONGEST or data.find(_END) != head_size - len(_END):
        return None
    head = data[:head_size]
    lengths = _LENGTH.findall(head)
    if len(lengths) != 1 or int(lengths[0]) != len(body):
        return None
    found = _LENGTH.search(head)
    if found is None:
        return None
    return KnownHead(head[: found.start(1)], head[found.end(1) :])
