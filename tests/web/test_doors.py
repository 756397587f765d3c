"""The fast lane and aiohttp's ordinary door answer alike, whatever the bytes and their pieces."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bayeux.errors import BayeuxError
from app.web.endpoint import FIXED_HEADERS, JSON_TYPE, WebOptions, error_body
from app.web.origins import Origins
from tests.web.requests import (
    CLIENT_ID,
    CONNECT,
    COOKIE,
    DISCONNECT,
    HANDSHAKE,
    PUBLISH,
    SUBSCRIBE,
    chunked,
    deflated,
    encode,
    gzipped,
    post,
    post_messages,
)
from tests.web.rig import LONG_S, Door, Response, Rig, Transcript, less, play, without_faults

pytestmark = pytest.mark.usefixtures("nothing_blocks")

ORIGINS = Origins(("https://friend.example", "http://other.example:8000"))
WEB_OPTIONS = WebOptions(origins=ORIGINS, max_request_size=20_000)
# The head's second, and what aiohttp says of the connection: HTTP/1.1 keeps it without a word.
VOLATILE = ("date",)

HELLO = post_messages(HANDSHAKE, cookie="")
SAY = encode(PUBLISH)
UTF16 = encode(HANDSHAKE).decode().encode("utf-16")
JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"
PAGE = f"Cookie: {COOKIE}"


def spaced(raw: bytes, old: bytes, new: bytes) -> bytes:
    assert old in raw
    return raw.replace(old, new, 1)


# What is sent after a handshake, and the statuses of the answers to it.
CASES: dict[str, tuple[bytes, list[int]]] = {
    "a publish": (post_messages(PUBLISH), [200]),
    "a batch": (post_messages(SUBSCRIBE, PUBLISH, CONNECT), [200]),
    "a single object": (post(SAY[1:-1], [JSON, PAGE]), [200]),
    "nothing said of the type": (post(SAY, [PAGE]), [200]),
    "text/plain": (post(SAY, ["Content-Type: text/plain", PAGE]), [200]),
    "an odd type": (post(SAY, ["Content-Type: what/ever", PAGE]), [200]),
    "an illegal type": (post(SAY, ["Content-Type: ;;;", PAGE]), [200]),
    "a suffix": (post(SAY, [JSON, PAGE], path="/cometd/publish"), [200]),
    "a long suffix": (post(SAY, [JSON, PAGE], path="/bayeux/a/b/c"), [200]),
    "a query": (post(SAY, [JSON, PAGE], path="/cometd?a=b"), [200]),
    "a fragment": (post(SAY, [JSON, PAGE], path="/cometd#a"), [200]),
    "an escaped path": (post(SAY, [JSON, PAGE], path="/com%65td"), [200]),
    "an absolute target": (post(SAY, [JSON, PAGE], path="http://holdfast.test/cometd"), [200]),
    "another server's target": (post(SAY, [JSON], path="http://else.test/cometd"), [200]),
    "another path": (post(SAY, [JSON], path="/cometdx"), [404]),
    "dots in the path": (post(SAY, [JSON], path="/x/../cometd"), [404]),
    "two slashes": (post(SAY, [JSON], path="//cometd"), [404]),
    "a held connect": (post_messages(CONNECT) + post_messages(CONNECT), [200, 200]),
    "a disconnect": (post_messages(DISCONNECT) + post_messages(PUBLISH), [200, 200]),
    "no cookie": (post_messages(PUBLISH, cookie=""), [200]),
    "another browser": (post_messages(PUBLISH, cookie="BAYEUX_BROWSER=x"), [200]),
    "an illegal cookie": (post_messages(PUBLISH, cookie='BAYEUX_BROWSER="<>"'), [200]),
    "two cookies": (post_messages(PUBLISH, cookie=f"a=b; {COOKIE}; c=d"), [200]),
    "cookies in two headers": (post(SAY, ["Cookie: a=b", PAGE]), [200]),
    "a first visit": (post_messages(HANDSHAKE, cookie=""), [200]),
    # Bodies
    "no body": (post(b"", [JSON]), [400]),
    "no length": (post(b"", [JSON], length=""), [400]),
    "white space": (post(b"  ", [JSON]), [400]),
    "an empty array": (post(b"[]", [JSON]), [400]),
    "no object": (post(b"[1]", [JSON]), [400]),
    "no JSON": (post(b"{nope", [JSON]), [400]),
    "NaN": (post(b'[{"channel":"/a","data":NaN}]', [JSON]), [400]),
    "a byte order mark": (post(b"\xef\xbb\xbf" + SAY, [JSON, PAGE]), [400]),
    "bytes that are no UTF-8": (post(b'[{"channel":"/a\xff"}]', [JSON]), [400]),
    "a lone surrogate": (post(b'[{"channel":"/a\\ud800"}]', [JSON]), [400]),
    "depth": (post(b"[" * 5000, [JSON]), [400]),
    "a huge integer": (post(b'[{"channel":"/a","data":99999999999999999999999}]', [JSON]), [400]),
    "a body that is too large": (post(b" " * 20_001, [JSON]), [413]),
    "a body as large as may be": (post(SAY.ljust(20_000), [JSON, PAGE]), [200]),
    "two bodies as large as may be": (post(SAY.ljust(20_000), [JSON, PAGE]) * 2, [200, 200]),
    "Latin-1": (post(SAY, ["Content-Type: text/plain; charset=ISO-8859-1", PAGE]), [200]),
    "UTF-16": (post(UTF16, ["Content-Type: text/json; charset=utf-16"]), [200]),
    "UTF-8 that is said to be UTF-16": (
        post(b"[{}]x", ["Content-Type: text/json; charset=utf-16"]),
        [400],
    ),
    "a charset in quotes": (
        post(SAY, ['Content-Type: application/json; charset="utf-8"', PAGE]),
        [200],
    ),
    "an unknown charset": (post(SAY, [f"{JSON}; charset=klingon"]), [415]),
    "a charset that is none": (post(SAY, [f"{JSON}; charset=base64"]), [415]),
    "a charset that cannot be a name": (post(SAY, [f"{JSON}; charset=\x01\x02"]), [400]),
    "another spelling of the type": (
        post(SAY, ["Content-Type: APPLICATION/JSON; Charset=utf-8", PAGE]),
        [200],
    ),
    "a form": (post(b"message=%5B%7B%7D%5D", [FORM]), [200]),
    "a form with two messages": (post(b"message=[{}]&message={}&x=y", [FORM]), [200]),
    "a form without messages": (post(b"a=b", [FORM]), [400]),
    "a form that is no UTF-8": (post(b"message=\xff", [FORM]), [400]),
    "a form with many fields": (post(b"a&" * 2000, [FORM]), [400]),
    "multipart": (post(b"--x--", ["Content-Type: multipart/form-data; boundary=x"]), [415]),
    "gzip": (post(gzipped(SAY), [JSON, PAGE, "Content-Encoding: gzip"]), [200]),
    "GZIP": (post(gzipped(SAY), [JSON, PAGE, "Content-Encoding: GZIP"]), [200]),
    "deflate": (post(deflated(SAY), [JSON, PAGE, "Content-Encoding: deflate"]), [200]),
    "identity": (post(SAY, [JSON, PAGE, "Content-Encoding: identity"]), [200]),
    "an unknown encoding": (post(SAY, [JSON, "Content-Encoding: snappy"]), [415]),
    "two encodings": (post(gzipped(SAY), [JSON, "Content-Encoding: gzip, gzip"]), [415]),
    "gzip that is none": (post(SAY, [JSON, "Content-Encoding: gzip"]), [400]),
    "gzip cut short": (post(gzipped(SAY)[:40], [JSON, "Content-Encoding: gzip"]), [400]),
    "two members of gzip": (
        post(gzipped(SAY[:20]) + gzipped(SAY[20:]), [JSON, PAGE, "Content-Encoding: gzip"]),
        [200],
    ),
    "two members of gzip that inflate": (
        post(gzipped(b" " * 15_000) * 2, [JSON, "Content-Encoding: gzip"]),
        [413],
    ),
    "gzip that inflates": (
        post(gzipped(b" " * 1_000_000), [JSON, "Content-Encoding: gzip"]),
        [413],
    ),
    "chunked": (chunked(SAY, 7, [JSON, PAGE]), [200]),
    "chunked with a trailer": (chunked(SAY, 9, [JSON, PAGE], b"X-Sum: 1\r\n"), [200]),
    "chunked gzip": (chunked(gzipped(SAY), 5, [JSON, PAGE, "Content-Encoding: gzip"]), [200]),
    "chunked and empty": (chunked(b"", 1, [JSON]), [400]),
    "chunked and too large": (chunked(b" " * 20_001, 4000, [JSON]), [413]),
    # Methods
    "OPTIONS": (b"OPTIONS /cometd HTTP/1.1\r\nHost: h\r\n\r\n", [200]),
    "GET": (b"GET /cometd HTTP/1.1\r\nHost: h\r\n\r\n", [400]),
    "PUT": (spaced(post(SAY), b"POST", b"PUT"), [400]),
    "a small post": (spaced(post(SAY), b"POST", b"post"), [400]),
    "a script": (b"GET /cometd?jsonp=f&message=[{}] HTTP/1.1\r\nHost: h\r\n\r\n", [200]),
    # Origins
    "the own origin": (post(SAY, [PAGE, "Origin: http://holdfast.test"]), [200]),
    "the own origin over TLS": (post(SAY, [PAGE, "Origin: https://holdfast.test:443"]), [200]),
    "another port": (post(SAY, [PAGE, "Origin: http://holdfast.test:81"]), [403]),
    "a friend": (post(SAY, [PAGE, "Origin: https://friend.example"]), [200]),
    "a friend in capitals": (post(SAY, [PAGE, "Origin: HTTPS://Friend.Example:443"]), [200]),
    "a friend without TLS": (post(SAY, [PAGE, "Origin: http://friend.example"]), [403]),
    "almost a friend": (post(SAY, [PAGE, "Origin: https://friend.example.evil.test"]), [403]),
    "null": (post(SAY, [PAGE, "Origin: null"]), [403]),
    "an empty origin": (post(SAY, [PAGE, "Origin: "]), [403]),
    "two origins": (
        post(SAY, [PAGE, "Origin: https://friend.example", "Origin: https://evil.test"]),
        [200],
    ),
    "an origin that is no text": (post(SAY, [PAGE, "Origin: http://\xe9\x80"]), [403]),
    "an origin that is almost ASCII": (
        post(SAY, [PAGE, "Origin: http://other.example:8000\xe2\x84\xaa"]),
        [403],
    ),
    "a friend who talks rubbish": (post(b"{", ["Origin: https://friend.example"]), [400]),
    "a friend's preflight": (
        b"OPTIONS /cometd HTTP/1.1\r\nHost: h\r\nOrigin: https://friend.example\r\n\r\n",
        [200],
    ),
    # Connections
    "goodbye": (post(SAY, [JSON, PAGE, "Connection: close"]), [200]),
    # What aiohttp's parser does not like takes what came with it along.
    "words after goodbye": (
        post(SAY, [JSON, PAGE, "Connection: close"]) + post_messages(PUBLISH),
        [400],
    ),
    "HTTP/1.0": (post(SAY, [JSON, PAGE], version="HTTP/1.0"), [200]),
    "HTTP/1.0 that stays": (
        post(SAY, [JSON, PAGE, "Connection: keep-alive"], version="HTTP/1.0")
        + post_messages(PUBLISH),
        [200, 200],
    ),
    "HTTP/1.0 without a host": (post(SAY, [PAGE], version="HTTP/1.0", host=""), [200]),
    "HTTP/1.1 without a host": (post(SAY, [PAGE], host=""), [400]),
    "HTTP/1.2": (post(SAY, [JSON], version="HTTP/1.2"), [400]),
    "HTTP/2.0": (post(SAY, [JSON], version="HTTP/2.0"), [200]),
    "HTTP/0.9": (post(SAY, [JSON], version="HTTP/0.9"), [200]),
    "two hosts": (post(SAY, ["Host: other"]), [400]),
    "a body that is asked for": (post(SAY, [JSON, PAGE, "Expect: 100-continue"]), [100, 200]),
    "something else expected": (post(SAY, [JSON, PAGE, "Expect: wonders"]), [417]),
    "an upgrade to something else": (
        post(SAY, [JSON, PAGE, "Connection: upgrade", "Upgrade: h2c"]),
        [200],
    ),
    "two in one": (post_messages(PUBLISH) + post_messages(SUBSCRIBE), [200, 200]),
    "one of each kind": (
        post_messages(PUBLISH) + chunked(SAY, 5, [PAGE]) + post_messages(PUBLISH) + post(b"["),
        [200, 200, 200, 400],
    ),
    "forty in one": (post_messages(PUBLISH) * 40, [200] * 40),
    "empty lines between": (
        post_messages(PUBLISH) + b"\r\n\r\n" + post_messages(PUBLISH),
        [200] * 2,
    ),
    "an empty line first": (b"\r\n" + post_messages(PUBLISH), [200]),
    # Heads
    "a length in small letters": (post(SAY, [PAGE], length=f"content-length:{len(SAY)}"), [200]),
    "a length with zeros": (post(SAY, [PAGE], length=f"Content-Length: 000{len(SAY)}"), [200]),
    "a length with a tab": (post(SAY, [PAGE], length=f"Content-Length:\t{len(SAY)}\t "), [200]),
    "a length with a sign": (post(SAY, [PAGE], length=f"Content-Length: +{len(SAY)}"), [400]),
    "a length with a space before": (post(SAY, length=f"Content-Length : {len(SAY)}"), [400]),
    "a hexadecimal length": (post(SAY, length="Content-Length: 0x10"), [400]),
    "a negative length": (post(SAY, length="Content-Length: -1"), [400]),
    "a list of lengths": (post(SAY, length=f"Content-Length: {len(SAY)}, {len(SAY)}"), [400]),
    "an empty length": (post(SAY, length="Content-Length:"), [400]),
    "a length beyond all": (post(SAY, length=f"Content-Length: {2**64 + len(SAY)}"), [400]),
    "the same length twice": (post(SAY, [PAGE, f"Content-Length: {len(SAY)}"]), [400]),
    "two lengths": (post(SAY, [PAGE, "Content-Length: 3"]), [400]),
    "a length that is a lie": (
        post(SAY + b"xyz", [PAGE], length=f"Content-Length: {len(SAY)}"),
        [400],
    ),
    "a length and chunks": (
        post(b"0\r\n\r\n", ["Transfer-Encoding: chunked"]),
        [400],
    ),
    "chunks and something else": (
        post(b"0\r\n\r\n", length="Transfer-Encoding: chunked, x"),
        [400],
    ),
    "something else and chunks": (
        post(b"0\r\n\r\n", length="Transfer-Encoding: x, chunked"),
        [400],
    ),
    "chunks, spelt oddly": (post(b"0\r\n\r\n", length="Transfer-Encoding: xchunked"), [400]),
    "chunks twice": (post(b"0\r\n\r\n", length="Transfer-Encoding: chunked, chunked"), [400]),
    "a chunk that is no number": (post(b"z\r\n\r\n", length="Transfer-Encoding: chunked"), [400]),
    "a folded line": (post(SAY, ["X-Long: a\r\n b", PAGE]), [400]),
    "a folded length": (post(SAY, ["X-Long: a\r\n Content-Length: 3", PAGE]), [400]),
    "line feeds alone": (spaced(post(SAY, [PAGE]), b"\r\n", b"\n"), [400]),
    "a line feed in the head": (spaced(post(SAY, ["X: y", PAGE]), b"y\r\n", b"y\n"), [400]),
    "a carriage return in the head": (post(SAY, ["X: y\rZ: z", PAGE]), [400]),
    "a zero byte": (post(SAY, ["X: \0", PAGE]), [400]),
    "a header without a name": (post(SAY, [": x", PAGE]), [400]),
    "a header without a colon": (post(SAY, ["what", PAGE]), [400]),
    "a header twice": (post(SAY, ["X: 1", "X: 2", PAGE]), [200]),
    "the type twice": (post(SAY, [JSON, "Content-Type: text/plain", PAGE]), [400]),
    "many headers": (post(SAY, [f"X-{n}: y" for n in range(200)]), [400]),
    "a long header": (post(SAY, ["X: " + "y" * 9000]), [400]),
    "a long target": (post(SAY, path="/cometd/" + "y" * 9000), [400]),
    "a head too long to remember": (post(SAY, ["X: " + "y" * 4000, PAGE]), [200]),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", [400]),
    "a priface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
    "half a head": (post(SAY, [PAGE])[:40], []),
    "half a body": (post(SAY, [PAGE])[:-5], []),
}


async def compare(*chunks: bytes) -> Transcript:
    """What all doors answer to these chunks: the same."""
    fast, ordinary, plain = [
        less(await play(chunks, door=door, web_options=WEB_OPTIONS), *VOLATILE) for door in Door
    ]
    assert fast.lines() == ordinary.lines()
    assert fast.lines() == in_our_words(plain).lines()
    return fast


def in_our_words(plain: Transcript) -> Transcript:
    """What aiohttp says of its own to bytes that are no HTTP."""
    malformed = Response(
        400,
        {
            **{name.lower(): value for name, value in FIXED_HEADERS.items()},
            "content-type": JSON_TYPE,
            "content-length": "55",
        },
        error_body(BayeuxError.REQUEST_MALFORMED),
    )
    responses = [
        malformed if each.headers.get("server", "").startswith("Python") else each
        for each in plain.responses
    ]
    return replace(plain, responses=responses)


def statuses(transcript: Transcript) -> list[int]:
    return [response.status for response in transcript.responses]


def pieces(data: bytes, ends: Iterable[int]) -> list[bytes]:
    """The data cut at these places."""
    cuts = sorted({0, len(data), *(end % (len(data) + 1) for end in ends)})
    return [data[start:end] for start, end in pairwise(cuts)]


@pytest.mark.parametrize("name", CASES)
async def test_both_doors_answer_alike(name: str) -> None:
    request, expected = CASES[name]
    heard = await compare(HELLO, request)
    assert statuses(heard) == [200, *expected]


@pytest.mark.parametrize("name", CASES)
async def test_and_when_a_request_comes_in_two_pieces(name: str) -> None:
    request, expected = CASES[name]
    ends = [at for at in range(1, len(request)) if request[at : at + 1] in b"\r\n:{ "]
    for end in {1, len(request) // 2, len(request) - 1, *ends[:40:6], *ends[-2:]}:
        heard = await compare(HELLO, request[:end], request[end:])
        if expected == [200]:
            assert statuses(heard) == [200, 200], end


@pytest.mark.parametrize("name", ["a publish", "a friend", "chunked gzip", "a form"])
async def test_and_when_it_comes_byte_by_byte(name: str) -> None:
    request, expected = CASES[name]
    heard = await compare(HELLO, *(request[at : at + 1] for at in range(len(request))))
    assert statuses(heard) == [200, *expected]


# Requests with the same head, and others, in any order, cut and glued in any way. A request that
# ends its connection takes along what came with it; what is set aside behind a held connect comes
# in one piece afterwards, so such requests and held connects would not be comparable.
LAST = ["goodbye", "HTTP/1.0", "HTTP/1.0 without a host", "HTTP/0.9", "HTTP/2.0"]
GOOD = [
    request
    for name, (request, expected) in CASES.items()
    if len(request) < 1000 and 400 not in expected and expected and name not in LAST
]
MENU = [
    *GOOD,
    *[post(b"["), post(b""), b"GET /cometd HTTP/1.1\r\nHost: h\r\n\r\n"],
    *[post_messages({**PUBLISH, "data": data}) for data in ("", 1, "x" * 300, None, {"a": "\r\n"})],
    *[post_messages(PUBLISH)] * 30,
    *[post_messages(CONNECT)] * 8,
    *[post_messages(SUBSCRIBE)] * 8,
    post_messages({**PUBLISH, "data": post_messages(PUBLISH).decode()}),
    post(post_messages(PUBLISH), [JSON, PAGE]),
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(MENU), min_size=1, max_size=6),
    st.lists(st.integers(min_value=0, max_value=5000), max_size=6),
    st.booleans(),
)
def test_whatever_is_sent_in_whatever_pieces(
    requests: list[bytes], ends: list[int], is_glued: bool
) -> None:
    if is_glued:
        chunks = pieces(b"".join(requests), ends)
    else:
        chunks = [chunk for request in requests for chunk in pieces(request, ends[:1])]
    asyncio.run(compare(HELLO, *chunks))


def heads() -> st.SearchStrategy[bytes]:
    """Requests as a generator of bytes imagines them: mostly right."""
    names = ["Host", "Content-Type", "Cookie", "Origin", "Expect", "Connection", "X-A", "Upgrade"]
    names += ["Transfer-Encoding", "Content-Encoding", "Content-Length", "content-length"]
    values = ["h", "close", "chunked", "gzip", "application/json", COOKIE, "null", "100-continue"]
    values += ["3", "0", "websocket", "upgrade", "http://h", "", "application/json;charset=utf-16"]
    colons = st.sampled_from([": ", ":", ":\t", " : ", ":  ", "\t:"])
    name = st.sampled_from(names)
    spelt = st.one_of(name, name.map(str.lower), name.map(str.upper))
    line = st.tuples(spelt, colons, st.sampled_from(values)).map("".join)
    start = st.sampled_from(
        ["POST /cometd HTTP/1.1", "POST /bayeux/connect HTTP/1.1", "POST /cometd HTTP/1.0"]
    )
    length = st.sampled_from(["", f"Content-Length: {len(SAY)}", "Content-Length: 3"])
    lines = st.tuples(start, st.just("Host: h"), st.lists(line, max_size=3), length)
    return lines.map(
        lambda each: (
            "\r\n".join(part for part in (each[0], each[1], *each[2], each[3]) if part).encode()
            + b"\r\n\r\n"
        )
    )


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(heads(), st.sampled_from([SAY, b"", b"abc", b"[", b"0\r\n\r\n"])), max_size=3
    ),
    st.lists(st.integers(min_value=0, max_value=1000), max_size=3),
)
def test_whatever_the_head_says(requests: list[tuple[bytes, bytes]], ends: list[int]) -> None:
    data = b"".join(head + body for head, body in requests)
    asyncio.run(compare(HELLO, *pieces(data, ends), post_messages(PUBLISH)))


async def test_a_head_that_comes_again_is_not_taken_for_one_that_is_only_like_it() -> None:
    again = post_messages(PUBLISH)
    others = [
        again.replace(b"/cometd", b"/bayeux"),
        again.replace(b"/cometd", b"/cometx"),
        again.replace(b"POST", b"PUT "),
        again.replace(b"HTTP/1.1", b"HTTP/1.0"),
        again.replace(b"Content-Length: ", b"Content-Length: 0"),
        again.replace(b"Content-Length: ", b"Content-Length:  "),
        again.replace(b"Content-Length: ", b"Content-Length: -"),
        again.replace(b"Content-Length: ", b"Content-Length: 0000000000"),
        again.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"),
        again.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        again.replace(b"\r\n\r\n", b"\r\nOrigin: null\r\n\r\n"),
        again.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n"),
        again.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
        again.replace(b"\r\n\r\n", b"\n\r\n"),
        again.replace(b"\r\n\r\n", b" \r\n\r\n"),
        again.replace(b"BROWSER=", b"BROWSER=x"),
        again + b"\r\n",
        again + b"P",
        again[:-1],
        again + again,
    ]
    for other in others:
        await compare(HELLO, again, again, other)
        await compare(HELLO, again, again, other, again, again)
        await compare(HELLO, again, again, other + again, again)


async def test_a_body_that_is_a_whole_request_is_a_body() -> None:
    again = post_messages(PUBLISH)
    for carrier in (post(again, [JSON, PAGE]), chunked(again, 4000, [PAGE])):
        at = carrier.index(again)
        for chunks in (
            [carrier[:at], carrier[at:]],
            [carrier[: at - 1], carrier[at - 1 : at], carrier[at:]],
            [carrier[:at], again, carrier[at + len(again) :]],
        ):
            heard = await compare(HELLO, again, again, *chunks, again)
            assert statuses(heard) == [200, 200, 200, 400, 200]


async def test_a_header_that_is_a_whole_request_is_a_header() -> None:
    again = post_messages(PUBLISH)
    heard = await compare(HELLO, again, again, b"POST /cometd HTTP/1.1\r\nX: ", again)
    assert statuses(heard)[:3] == [200, 200, 200]
    heard = await compare(HELLO, again, b"POST /cometd HTTP/1.1\r\nX: ", again, again)
    assert statuses(heard)[:2] == [200, 200]


@pytest.mark.parametrize("size", range(1, 12))
async def test_the_first_bytes_of_the_next_request_may_come_along(size: int) -> None:
    again = post_messages(PUBLISH)
    heard = await compare(HELLO, again, again + again[:size], again[size:], again)
    assert statuses(heard) == [200] * 5
    heard = await compare(HELLO, again + again[:size], again[size:], again, again)
    assert statuses(heard) == [200] * 5


@pytest.mark.parametrize("size", [1, 20, 60, 150])
async def test_requests_behind_a_held_connect_wait_in_whatever_pieces(size: int) -> None:
    rest = post_messages(PUBLISH) * 3
    held = post_messages(CONNECT)
    heard = await compare(HELLO, held, held, *pieces(rest, range(0, len(rest), size)))
    assert statuses(heard) == [200] * 6


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["GET", "POST", "OPTIONS", "PUT", "CONNECT", "TRACE"]),
    st.one_of(
        st.text(st.characters(codec="latin-1", exclude_categories=["Cc", "Zs"])).map(
            "/cometd".__add__
        ),
        st.from_regex(r"(http://|//)?[a-z.:@\[\]%]{0,9}/cometd[a-z.:%/?#&=*]{0,9}", fullmatch=True),
        st.binary(min_size=1, max_size=9).map(
            lambda raw: "/cometd?jsonp=f&message=" + "".join(f"%{byte:02x}" for byte in raw)
        ),
        st.sampled_from(["*", "//", "/cometd/*", "http://[", "/cometd?message", "//[/cometd"]),
    ),
    st.booleans(),
)
def test_whatever_is_asked_for(method: str, target: str, is_upgrade: bool) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    head = f"{method} {target} HTTP/1.1\r\nHost: h\r\n{upgrade if is_upgrade else ''}\r\n"
    heard = asyncio.run(compare(HELLO, head.encode("latin-1"), post_messages(PUBLISH)))
    assert all(response.status < 500 for response in heard.responses)


SECOND_ID, SECOND_COOKIE = f"{3:032x}", f"BAYEUX_BROWSER={4:032x}"
IDS = [(CLIENT_ID, COOKIE), (SECOND_ID, SECOND_COOKIE)]


def said_by(who: int, message: Mapping[str, object]) -> bytes:
    client_id, cookie = IDS[who]
    return post_messages({**message, "clientId": client_id}, cookie=cookie)


POLL = {**CONNECT, "advice": {"timeout": 0}}
# The first only publishes: who of two is served first when both were held is nobody's promise.
SAYINGS = st.one_of(
    st.tuples(st.just(0), st.sampled_from([PUBLISH, PUBLISH, POLL])),
    st.tuples(st.just(1), st.sampled_from([CONNECT, CONNECT, CONNECT, POLL, PUBLISH, DISCONNECT])),
)
EVENTS = st.one_of(
    st.tuples(st.just("say"), SAYINGS),
    st.tuples(st.just("say"), SAYINGS),
    st.tuples(st.just("say"), SAYINGS),
    st.tuples(st.just("begin to say"), SAYINGS),
    st.tuples(
        st.sampled_from(["drop", "stop reading", "read on"]),
        st.tuples(st.integers(min_value=0, max_value=1), st.none()),
    ),
    # Times of which no sum is one of the server's.
    st.tuples(st.just("wait"), st.tuples(st.just(0), st.sampled_from([1.3, 12.7, 45.1]))),
)
Event = tuple[str, tuple[int, Any]]


class Scene:
    """Two clients at a rig, each with a session, and all that they heard."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._clients = [rig.connect(), rig.connect()]
        self._begun = [b"", b""]
        # Who does not read. How many requests are then heard before its connection is stuck is
        # nobody's promise: it says one thing more.
        self._deaf: dict[int, bool] = {}
        self.heard: list[str] = []

    async def begin(self) -> None:
        for who, client in enumerate(self._clients):
            await client.send(HELLO, said_by(who, SUBSCRIBE), said_by(who, CONNECT))

    async def play(self, event: str, who: int, what: Any) -> None:
        if self._clients[who].is_over():
            await self._drop(who)
        client = self._clients[who]
        if event == "say":
            await self._send(who, said_by(who, what))
        elif event == "begin to say":
            raw = said_by(who, what)
            await self._send(who, raw[:90])
            self._begun[who] = raw[90:]
        elif event == "drop":
            await self._drop(who)
        elif event == "wait":
            self._rig.pass_time(what)
        elif event == "stop reading":
            self._deaf.setdefault(who, False)
            client.transport.stop_reading()
        else:
            self._deaf.pop(who, None)
            client.transport.read_on()
        await client.settle()

    async def end(self) -> None:
        for who in (0, 1):
            await self.play("read on", who, None)
        for _ in range(3):
            self._rig.pass_time(LONG_S)
            await self._clients[0].settle()
        for who in (0, 1):
            await self._drop(who)

    async def _send(self, who: int, data: bytes) -> None:
        if who in self._deaf:
            if self._deaf[who]:
                return
            self._deaf[who] = True
        rest, self._begun[who] = self._begun[who], b""
        await self._clients[who].send(*([rest] if rest else []), data)

    async def _drop(self, who: int) -> None:
        client = self._clients[who]
        self.heard += [f"{who} {line}" for line in less(client.heard(), *VOLATILE).lines()]
        client.transport.lose()
        await client.settle()
        self._clients[who] = self._rig.connect()
        self._deaf.pop(who, None)
        self._begun[who] = b""


async def heard_at(door: Door, events: list[Event]) -> list[str]:
    with without_faults():
        async with Rig(door=door, web_options=WEB_OPTIONS) as rig:
            scene = Scene(rig)
            await scene.begin()
            for event, (who, what) in events:
                await scene.play(event, who, what)
            await scene.end()
            return scene.heard


@settings(max_examples=100, deadline=None)
@given(st.lists(EVENTS, max_size=10))
def test_whatever_two_clients_do(events: list[Event]) -> None:
    async def compare_doors() -> None:
        fast, ordinary, plain = [await heard_at(door, events) for door in Door]
        assert fast == ordinary
        assert fast == plain

    asyncio.run(compare_doors())


async def test_a_server_without_long_polling_has_it_on_neither_side() -> None:
    options = WebOptions(transports=frozenset({"websocket"}))
    for door in Door:
        heard = await play([HELLO, HELLO], door=door, web_options=options)
        assert statuses(heard) == [400, 400]
        assert b"400::transport_unknown" in heard.responses[0].body
