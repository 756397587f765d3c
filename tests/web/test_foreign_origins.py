"""The log names the origins of pages that may not use this server."""

import logging

import pytest

from holdfast.settings import Settings
from tests.web.requests import HANDSHAKE, encode, post
from tests.web.rig import FrontEnd, Rig

EVIL = "https://evil.test"
LINE = (
    "a request from the origin {} was refused: allow_origin does not have it; "
    "see docs/reference/error-codes.md#403-origin_denied"
)
JSON = "Content-Type: application/json;charset=UTF-8"
HELLO = encode(HANDSHAKE)
OPTIONS = Settings(
    transports=["websocket", "long-polling", "callback-polling"],
    allow_origin=["https://friend.example"],
)


def without_body(line: str, *headers: str) -> bytes:
    """A request of the foreign page with these header lines."""
    lines = [f"{line} HTTP/1.1", "Host: holdfast.test", f"Origin: {EVIL}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


SOCKET = [
    *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
]
REQUESTS = {
    "a post": post(HELLO, [JSON, f"Origin: {EVIL}"]),
    "a publish": post(b"[]", [JSON, f"Origin: {EVIL}"], path="/publish"),
    "a form": post(HELLO, ["Content-Type: text/plain", f"Referer: {EVIL}/page?secret=1"]),
    "an upgrade": without_body("GET /cometd", *SOCKET),
    "a script": without_body("GET /cometd?jsonp=f&message=[]"),
    "a preflight": without_body("OPTIONS /cometd", "Access-Control-Request-Method: POST"),
}


@pytest.mark.parametrize("front_end", [FrontEnd.FAST_LANE, FrontEnd.ORDINARY])
@pytest.mark.parametrize("name", REQUESTS)
async def test_a_refused_request_of_a_foreign_page_is_logged_with_its_origin(
    name: str, front_end: FrontEnd, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with Rig(front_end=front_end, options=OPTIONS) as rig:
        await rig.connect().send(REQUESTS[name])
    assert caplog.messages == [LINE.format(EVIL)]


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("Sec-Fetch-Site: cross-site", "null"),
        ("Origin: null", "null"),
        (f"Origin: {EVIL}/{'x' * 5000}", f"{EVIL}/{'x' * 82}"),
    ],
)
async def test_the_log_shows_a_hidden_origin_as_null_and_the_beginning_of_a_long_one(
    header: str, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with Rig(options=OPTIONS) as rig:
        await rig.connect().send(post(HELLO, [JSON, header]))
    assert caplog.messages == [LINE.format(shown)]


async def test_many_requests_of_one_foreign_page_make_two_log_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with Rig(options=OPTIONS) as rig:
        await rig.connect().send(*[REQUESTS["a post"]] * 50)
        rig.bayeux.state.notices.end_window()
    assert caplog.messages == [LINE.format(EVIL), f"{LINE.format(EVIL)}, 49 more"]


@pytest.mark.parametrize("origin", ["https://friend.example", "http://holdfast.test"])
async def test_requests_of_allowed_pages_are_not_logged(
    origin: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with Rig(options=OPTIONS) as rig:
        await rig.connect().send(post(HELLO, [JSON, f"Origin: {origin}"]))
    assert caplog.messages == []
