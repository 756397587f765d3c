"""The fast lane and aiohttp answer alike, whatever the bytes and their pieces."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.settings import Settings
from tests.effort import TIMES
from tests.web.front_end_cases import CASES, JSON, PAGE, SAY
from tests.web.front_ends import (
    HELLO,
    compare,
    pieces,
    statuses,
)
from tests.web.requests import (
    CONNECT,
    COOKIE,
    PUBLISH,
    SUBSCRIBE,
    chunked,
    post,
    post_messages,
)
from tests.web.rig import FrontEnd, play

# Long searches, also on a machine that has other things to do.
pytestmark = [
    pytest.mark.usefixtures("nothing_blocks"),
    pytest.mark.timeout(240),
    pytest.mark.untraced,
]


@pytest.mark.parametrize("name", CASES)
async def test_both_front_ends_answer_alike(name: str) -> None:
    request, expected = CASES[name]
    heard = await compare(HELLO, request)
    assert statuses(heard) == [200, *expected]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
async def test_both_front_ends_answer_alike_when_a_request_comes_in_two_pieces(name: str) -> None:
    request, expected = CASES[name]
    ends = [at for at in range(1, len(request)) if request[at : at + 1] in b"\r\n:{ "]
    some = ends[: 40 : 20 if TIMES == 1 else 6]
    for end in {1, len(request) // 2, len(request) - 1, *some, *ends[-2:]}:
        heard = await compare(HELLO, request[:end], request[end:])
        if expected == [200]:
            assert statuses(heard) == [200, 200], end


@pytest.mark.parametrize("name", ["a publish", "a friend", "chunked gzip", "a form"])
async def test_both_front_ends_answer_alike_when_a_request_comes_byte_by_byte(name: str) -> None:
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


@pytest.mark.slow
@settings(max_examples=60 * TIMES)
@given(
    st.lists(st.sampled_from(MENU), min_size=1, max_size=6),
    st.lists(st.integers(min_value=0, max_value=5000), max_size=6),
    st.booleans(),
)
def test_both_front_ends_answer_alike_whatever_is_sent_in_whatever_pieces(
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


@pytest.mark.slow
@settings(max_examples=60 * TIMES)
@given(
    st.lists(
        st.tuples(heads(), st.sampled_from([SAY, b"", b"abc", b"[", b"0\r\n\r\n"])), max_size=3
    ),
    st.lists(st.integers(min_value=0, max_value=1000), max_size=3),
)
def test_both_front_ends_answer_alike_whatever_the_head_says(
    requests: list[tuple[bytes, bytes]], ends: list[int]
) -> None:
    data = b"".join(head + body for head, body in requests)
    asyncio.run(compare(HELLO, *pieces(data, ends), post_messages(PUBLISH)))


async def test_a_head_that_differs_slightly_is_not_taken_for_a_known_head() -> None:
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
async def test_a_piece_may_end_with_the_first_bytes_of_the_next_request(size: int) -> None:
    again = post_messages(PUBLISH)
    heard = await compare(HELLO, again, again + again[:size], again[size:], again)
    assert statuses(heard) == [200] * 5
    heard = await compare(HELLO, again + again[:size], again[size:], again, again)
    assert statuses(heard) == [200] * 5


@pytest.mark.parametrize("size", [1, 20, 60, 150])
async def test_requests_behind_a_held_connect_wait_whatever_their_pieces(size: int) -> None:
    rest = post_messages(PUBLISH) * 3
    held = post_messages(CONNECT)
    heard = await compare(HELLO, held, held, *pieces(rest, range(0, len(rest), size)))
    assert statuses(heard) == [200] * 6


@pytest.mark.slow
@settings(max_examples=30 * TIMES)
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
def test_both_front_ends_answer_alike_whatever_method_and_target_are(
    method: str, target: str, is_upgrade: bool
) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    head = f"{method} {target} HTTP/1.1\r\nHost: h\r\n{upgrade if is_upgrade else ''}\r\n"
    heard = asyncio.run(compare(HELLO, head.encode("latin-1"), post_messages(PUBLISH)))
    assert all(response.status < 500 for response in heard.responses)


async def test_long_polling_that_is_disabled_is_refused_by_both_front_ends() -> None:
    options = Settings(transports=["websocket"])
    for front_end in FrontEnd:
        heard = await play([HELLO, HELLO], front_end=front_end, options=options)
        assert statuses(heard) == [400, 400]
        assert b"400::transport_unknown" in heard.responses[0].body
