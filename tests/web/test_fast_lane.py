"""The fast lane's own affairs: whose turn it is, how long a request may take, who is cut off."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.web.endpoint import WebOptions
from app.web.fast_lane import FastLane
from tests.web.requests import (
    CONNECT,
    HANDSHAKE,
    PUBLISH,
    SUBSCRIBE,
    encode,
    post,
    post_messages,
)
from tests.web.rig import LONG_S, Client, Rig

HELLO = post_messages(HANDSHAKE, cookie="")
HOLD = post_messages(CONNECT)
SAY = post_messages(PUBLISH)
# Deadlines that pass while a test waits.
SOON_S = 0.05


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    options = WebOptions(request_timeout_s=SOON_S, write_timeout_s=SOON_S)
    async with Rig(fast_lane=True, web_options=options) as rig:
        yield rig


async def holding(rig: Rig) -> Client:
    """A client whose connect is held."""
    client = rig.connect()
    await client.send(HELLO, HOLD, HOLD)
    assert statuses(client) == [200, 200]
    return client


def statuses(client: Client) -> list[int]:
    return [response.status for response in client.heard().responses]


def lane(client: Client) -> FastLane:
    assert isinstance(client.protocol, FastLane)
    return client.protocol


async def until_closed(client: Client) -> None:
    async with asyncio.timeout(5):
        while not client.is_over():
            await asyncio.sleep(SOON_S / 5)


async def test_bytes_keep_their_order_when_a_held_connect_is_answered_between_them(
    rig: Rig,
) -> None:
    client = await holding(rig)
    await client.send(SAY[:60])
    rig.pass_time(LONG_S)
    client.send_now(SAY[60:])
    await client.settle()
    assert statuses(client) == [200, 200, 200, 200]


async def test_a_body_behind_a_refused_upgrade_is_read_to_its_end(rig: Rig) -> None:
    client = rig.connect()
    upgrade = (
        b"GET /cometd HTTP/1.1\r\nHost: h\r\nOrigin: http://evil.test\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    await client.send(HELLO, upgrade + SAY[:-20], SAY[-20:], SAY)
    assert statuses(client) == [200, 403, 200, 200]


async def test_nothing_is_answered_behind_an_answer_that_ends_the_connection(rig: Rig) -> None:
    client = rig.connect()
    refused = post(b" " * 5000, ["Content-Encoding: snappy"])
    await client.send(HELLO, refused[:-1000], refused[-1000:] + SAY)
    assert statuses(client) == [200, 415]
    assert client.is_over()
