"""While another server may have opened the store, nothing is handled and nothing is said."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from functools import partial
from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from holdfast.web.admin.ndjson import send_lines
from holdfast.web.scheduling.speaking import until_speaking
from holdfast.web.ticker import Ticker
from tests.abuse.attacker import frame
from tests.web.requests import CONNECT, HANDSHAKE, PUBLISH, SUBSCRIBE, encode, post_messages
from tests.web.rig import FakeRight, FrontEnd, Rig, without_faults
from tests.web.test_faults import UPGRADE

HELLO = post_messages(HANDSHAKE, cookie="")
LARGE = {**PUBLISH, "data": "x" * 20_000}

pytestmark = [pytest.mark.usefixtures("nothing_blocks"), pytest.mark.untraced]


@pytest.mark.parametrize("message", [PUBLISH, CONNECT, LARGE], ids=["publish", "connect", "large"])
@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_request_waits_for_the_end_of_the_silence(
    front_end: FrontEnd, message: dict[str, object]
) -> None:
    with without_faults():
        async with Rig(front_end=front_end) as rig:
            client = rig.connect()
            await client.send(HELLO)
            rig.right.is_silent = True
            accepted = rig.bayeux.state.counters.accepted
            await client.send(post_messages(message))
            assert len(client.heard().responses) == 1
            assert rig.bayeux.state.counters.accepted == accepted
            rig.right.speak_again()
            await client.settle()
            [_, reply] = client.heard().responses
            assert b'"successful":true' in reply.body


async def test_an_export_that_has_begun_waits_for_the_end_of_the_silence() -> None:
    right, line = FakeRight(), b"x" * 100_000

    async def lines() -> AsyncIterator[bytes]:
        yield line
        yield line
        right.is_silent = True
        yield line

    async def export(request: web.Request) -> web.StreamResponse:
        return await send_lines(request, lines(), partial(until_speaking, right))

    application = web.Application()
    application.router.add_get("/", export)
    async with TestClient(TestServer(application)) as client, client.get("/") as answer:
        await answer.content.readexactly(2 * len(line) + 2)
        rest = asyncio.create_task(answer.content.read(1))
        await asyncio.sleep(0.05)
        assert not rest.done()
        right.speak_again()
        assert await rest == b"x"


async def _forget(rig: Rig, count: int) -> None:
    """Let this many clients send a request, and leave before the silence ends."""
    for _ in range(count):
        client = rig.connect()
        client.send_now(HELLO)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        client.transport.lose()


async def test_a_long_silence_keeps_no_requests_of_clients_that_have_left() -> None:
    async with Rig() as rig:
        client = rig.connect()
        rig.right.is_silent = True
        await _forget(rig, 1000)
        await client.send(HELLO)
        await _forget(rig, 2000)
        assert len(rig.unread.requests) < 1500
        rig.right.speak_again()
        await client.settle(4000)
        assert [each.status for each in client.heard().responses] == [200]
        assert not rig.unread.requests


def _cancelled() -> int:
    """How many futures were cancelled and are still in memory, also those of other tests."""
    found = [each for each in gc.get_objects() if isinstance(each, asyncio.Future)]
    return sum(each.cancelled() for each in found)


async def test_a_long_silence_keeps_no_handlers_of_clients_that_have_left() -> None:
    async with Rig(front_end=FrontEnd.ORDINARY) as rig:
        rig.right.is_silent = True
        before = _cancelled()
        await _forget(rig, 3000)
        await asyncio.sleep(0.01)
        assert _cancelled() - before < 1500
        rig.right.speak_again()
        client = rig.connect()
        await client.send(HELLO)
        assert [each.status for each in client.heard().responses] == [200]


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_reply_that_is_ready_waits_for_the_end_of_the_silence(front_end: FrontEnd) -> None:
    async with Rig(front_end=front_end) as rig:
        client = rig.connect()
        client.send_now(HELLO)
        rig.right.is_silent = True
        await client.settle()
        assert not client.heard().responses
        rig.right.speak_again()
        await client.settle()
        assert [each.status for each in client.heard().responses] == [200]


async def test_a_socket_keeps_the_order_of_its_messages_through_a_silence() -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(UPGRADE, frame(encode(HANDSHAKE)))
        rig.right.is_silent = True
        before = len(client.transport.written)
        for number in range(5):
            await client.send(frame(encode({**PUBLISH, "id": str(number)})))
        assert len(client.transport.written) == before
        rig.right.speak_again()
        await client.settle()
        written = bytes(client.transport.written)[before:]
        places = [written.index(b'"id":"%d"' % number) for number in range(5)]
        assert places == sorted(places)


async def test_a_held_connect_stays_held_and_is_pushed_afterwards() -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(HELLO)
        await client.send(*map(post_messages, (SUBSCRIBE, CONNECT, CONNECT)))
        held = len(client.heard().responses)
        rig.right.is_silent = True
        rig.server.publish("/news", "the latest")
        await client.settle()
        assert len(client.heard().responses) == held
        rig.right.speak_again()
        await client.settle()
        assert b"the latest" in client.heard().responses[-1].body


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_probes_are_answered_during_a_silence(path: str) -> None:
    async with Rig() as rig:
        rig.right.is_silent = True
        client = rig.connect()
        await client.send(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        async with asyncio.timeout(60):
            while not client.heard().responses:  # noqa: ASYNC110 - a thread counts
                await asyncio.sleep(0.001)
        assert [each.status for each in client.heard().responses] == [200]


async def test_time_stands_still_during_a_silence() -> None:
    right, server = FakeRight(), Mock()
    server.state.counters.accepted = 0
    ticker = Ticker(Mock(), right)
    ticker.start(server)
    await asyncio.sleep(0)
    right.is_silent = True
    await asyncio.sleep(0.25)
    ticks, stopped_at = server.tick.call_count, ticker.clock()
    ticker.end_turn_soon()
    await asyncio.sleep(0.25)
    assert server.tick.call_count == ticks
    assert server.flush.call_count == 1
    assert ticker.clock() == stopped_at
    began = time.monotonic()
    right.speak_again()
    await asyncio.sleep(0.25)
    ticker.stop()
    assert server.flush.call_count > 1
    assert server.tick.call_count > ticks
    # The quarter of a second of the silence is not in it.
    assert ticker.clock() - stopped_at < time.monotonic() - began + 0.2
