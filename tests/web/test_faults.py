"""A fault of the server is logged, and ends only the request in which it happened."""

from typing import NoReturn
from urllib.parse import quote

import pytest

from holdfast.bayeux import exchanges
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Exchange
from holdfast.settings import Settings
from tests.abuse.attacker import frame
from tests.web.requests import CONNECT, COOKIE, HANDSHAKE, PUBLISH, encode, post_messages
from tests.web.rig import LONG_S, FrontEnd, Rig

pytestmark = pytest.mark.usefixtures("nothing_blocks")

HELLO, SAY, HOLD = (
    post_messages(HANDSHAKE, cookie=""),
    post_messages(PUBLISH),
    post_messages(CONNECT),
)
QUERY = b"/cometd?message=" + quote(encode(PUBLISH)).encode()
SAY_BY_SCRIPT = (
    b"GET " + QUERY + b" HTTP/1.1\r\nHost: h\r\nReferer: http://h/\r\nCookie: " + COOKIE.encode()
) + b"\r\n\r\n"
# With callback-polling, too.
OPTIONS = Settings(transports=["long-polling", "callback-polling"])
UPGRADE = (
    b"GET /cometd HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
BUSY = b'[{"successful":false,"error":"503::server_busy"}]'
FAILED_FRAME = b"\x88\x12" + (1011).to_bytes(2, "big") + b"503::server_busy"


def fail(rig: Rig, when: str) -> None:
    """Let all requests fail from now on, before or after the core has handled them."""

    def handle(bayeux: Bayeux, body: bytes, exchange: Exchange, now: float) -> NoReturn:
        if when == "after":
            exchanges.receive(bayeux, body, exchange, now)
        raise RuntimeError("on purpose")

    rig.endpoint.scheduler.handle = handle


@pytest.mark.parametrize("front_end", FrontEnd)
@pytest.mark.parametrize("request_", [SAY, SAY_BY_SCRIPT])
async def test_a_request_that_fails_is_refused(
    front_end: FrontEnd, request_: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with Rig(front_end=front_end, options=OPTIONS) as rig:
        client = rig.connect()
        await client.send(HELLO)
        fail(rig, "before")
        await client.send(request_, request_)
        responses = client.heard().responses[1:]
        assert [(each.status, each.body) for each in responses] == [(503, BUSY)] * 2
        assert not client.heard().is_closed
        assert caplog.text.count("RuntimeError: on purpose") == 2


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_fault_after_an_answer_causes_no_second_answer(front_end: FrontEnd) -> None:
    async with Rig(front_end=front_end) as rig:
        client = rig.connect()
        await client.send(HELLO)
        fail(rig, "after")
        await client.send(SAY, SAY)
        assert [each.status for each in client.heard().responses] == [200, 200, 200]


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_connect_that_fails_is_not_held(front_end: FrontEnd) -> None:
    async with Rig(front_end=front_end) as rig:
        client = rig.connect()
        await client.send(HELLO, HOLD)
        fail(rig, "after")
        await client.send(HOLD)
        rig.pass_time(LONG_S)
        await client.settle()
        assert [each.status for each in client.heard().responses] == [200, 200, 503]


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_frame_that_fails_closes_its_socket(front_end: FrontEnd) -> None:
    async with Rig(front_end=front_end) as rig:
        client = rig.connect()
        fail(rig, "before")
        await client.send(UPGRADE, frame(encode(PUBLISH)))
        assert client.transport.written.endswith(FAILED_FRAME)


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_fault_before_a_pending_answer_causes_no_second_answer(front_end: FrontEnd) -> None:
    async with Rig(front_end=front_end) as rig:
        client = rig.connect()
        await client.send(HELLO)
        fail(rig, "after")
        await client.send(post_messages({**PUBLISH, "ext": {"delivery": {"key": "once"}}}))
        rig.keeper.turn()
        await client.settle()
        assert [each.status for each in client.heard().responses] == [200, 503]
