"""Recognises heads of requests that are byte for byte the same as before on the connection.

A client repeats the head of its requests; only the number after Content-Length changes. aiohttp's
parser would return the same result for the same bytes, so they need no second parse. Only heads
that the parser has accepted are ever recognised.
"""

import re
from collections.abc import Mapping

from holdfast.bayeux.wire.caller import NO_SPEAKER, Speaker

LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})(?=\r\n)", re.IGNORECASE)
_END = b"\r\n\r\n"
# Longer heads are rare, and each takes memory as long as its connection is open.
_LONGEST = 2048


class KnownHead:
    """A head in two parts, before and after the length of the body, and its content.

    Args:
        cors: The headers of responses that follow from its origin.
    """

    __slots__ = (
        *("_after", "_before", "_length", "_size", "_size_of_last", "_whole"),
        *("cors", "speaker"),
    )

    def __init__(
        self, before: bytes, after: bytes, speaker: Speaker, cors: Mapping[str, str]
    ) -> None:
        self._before = before
        self._after = after
        self._size = len(before) + len(after)
        self.speaker, self.cors = speaker, cors
        # Most requests of a connection are as long as the one before.
        self._size_of_last = -1
        self._length = 0
        self._whole = b""

    def begins(self, data: bytes) -> bool:
        """Return whether the data begin with this head, and a body of any length."""
        before = self._before
        return data.startswith(before) and data.startswith(
            self._after, data.find(b"\r", len(before))
        )

    def body_of(self, data: bytes) -> bytes | None:
        """Return the body, if the data are exactly this head and a complete body; else None."""
        if len(data) == self._size_of_last:
            return data[-self._length :] if data.startswith(self._whole) else None
        # The data's size determines the length: what remains without its digits.
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

    def request(self, body: bytes) -> bytes:
        """Return a request with this head and this body."""
        return b"%b%d%b%b" % (self._before, len(body), self._after, body)


def learn_beginning(data: bytes) -> KnownHead | None:
    """Learn a head whose body is still to come: only `begins` can be asked of it."""
    head = data[: data.find(_END) + len(_END)]
    found = LENGTH.search(head) if len(_END) <= len(head) <= _LONGEST else None
    if found is None:
        return None
    return KnownHead(head[: found.start(1)], head[found.end(1) :], NO_SPEAKER, {})


def learn(data: bytes, body: bytes, speaker: Speaker, cors: Mapping[str, str]) -> KnownHead | None:
    """Learn the head of a request that the parser found in this data, with this body.

    Returns None if the data contains more than that request, because the parser has begun another
    one.
    """
    size = len(data) - len(body)
    if size > _LONGEST or data.find(_END) != size - len(_END):
        return None
    head = data[:size]
    found = LENGTH.search(head)
    if found is None or int(found[1]) != len(body) or LENGTH.search(head, found.end()):
        return None
    return KnownHead(head[: found.start(1)], head[found.end(1) :], speaker, cors)
