"""Sends the same bytes to all front ends, and fails where their answers differ."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.bayeux.wire.unfit import malformed
from holdfast.settings import Settings
from holdfast.web.answering.endpoint import FIXED_HEADERS, JSON_TYPE, error_body
from tests.web.requests import (
    HANDSHAKE,
    post_messages,
)
from tests.web.rig import FrontEnd, Response, Transcript, less, play

FRIENDS = ["https://friend.example", "http://other.example:8000"]
OPTIONS = Settings(
    transports=["websocket", "long-polling", "callback-polling"],
    allow_origin=FRIENDS,
    max_request_size=20_000,
)
# Headers that differ from one second to the next.
VOLATILE = ("date",)
HELLO = post_messages(HANDSHAKE, cookie="")
_BODY = error_body(malformed("not HTTP"))
_MALFORMED = Response(
    ErrorReply.REQUEST_MALFORMED.code,
    {
        **{name.lower(): value for name, value in FIXED_HEADERS.items()},
        "content-type": JSON_TYPE,
        "content-length": str(len(_BODY)),
    },
    _BODY,
)


async def compare(*chunks: bytes) -> Transcript:
    """The answer to these chunks, which must be the same from all front ends."""
    fast, ordinary, plain = [
        less(await play(chunks, front_end=front_end, options=OPTIONS), *VOLATILE)
        for front_end in FrontEnd
    ]
    assert fast.lines() == ordinary.lines()
    assert fast.lines() == in_our_words(plain).lines()
    return fast


def in_our_words(plain: Transcript) -> Transcript:
    """The transcript with aiohttp's own answers to malformed requests replaced by ours."""
    responses = [
        _MALFORMED if each.headers.get("server", "").startswith("Python") else each
        for each in plain.responses
    ]
    return replace(plain, responses=responses)


def statuses(transcript: Transcript) -> list[int]:
    return [response.status for response in transcript.responses]


def pieces(data: bytes, ends: Iterable[int]) -> list[bytes]:
    """The data cut at these places."""
    cuts = sorted({0, len(data), *(end % (len(data) + 1) for end in ends)})
    return [data[start:end] for start, end in pairwise(cuts)]
