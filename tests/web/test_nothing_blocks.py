"""The running server makes no blocking calls in its event loop."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from blockbuster import BlockBuster, BlockingError, blockbuster_ctx

from holdfast.compose import serving
from holdfast.settings import Settings
from tests.abuse.attacker import HANDSHAKE

pytestmark = pytest.mark.untraced

HELLO = orjson.dumps([HANDSHAKE])


@pytest.fixture
def watch() -> Iterator[BlockBuster]:
    """Calls that block raise an error while this is active."""
    with blockbuster_ctx() as watch:
        watch.deactivate()
        yield watch


@pytest.fixture(params=[True, False], ids=["fast lane", "ordinary front end"])
async def server(
    watch: BlockBuster, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[aiohttp.ClientSession]:
    """A session with a running server that is being watched; starting may block."""
    given: dict[str, Any] = {
        "port": 0,
        "data": tmp_path,
        "fast_lane": request.param,
        "log_level": "debug",
        "timeout": 300,
        "transports": ["websocket", "long-polling", "callback-polling"],
    }
    jar = aiohttp.CookieJar(unsafe=True)
    async with (
        serving(Settings(**given)) as url,
        aiohttp.ClientSession(url, cookie_jar=jar) as client,
    ):
        watch.activate()
        yield client
        watch.deactivate()


async def test_the_watch_notices_blocking_calls(watch: BlockBuster) -> None:
    watch.activate()
    with pytest.raises(BlockingError):
        time.sleep(0)  # noqa: ASYNC251
    watch.deactivate()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (HELLO, {}),
        (b"{", {}),
        (b"[" * 1000, {}),
        (HELLO.ljust(600_000), {}),
        (gzip.compress(HELLO.ljust(600_000)), {"Content-Encoding": "gzip"}),
        (b"message=" + HELLO, {"Content-Type": "application/x-www-form-urlencoded"}),
        (HELLO.decode().encode("utf-16"), {"Content-Type": "text/plain;charset=utf-16"}),
        (HELLO, {"Content-Type": "text/plain;charset=klingon"}),
        (HELLO, {"Origin": "http://evil.test"}),
    ],
)
async def test_posts_do_not_block_the_event_loop(
    body: bytes, headers: dict[str, str], server: aiohttp.ClientSession
) -> None:
    async with server.post("/cometd", data=body, headers=headers) as response:
        assert response.status < 500
        assert await response.read()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/static/welcome.js",
        "/healthz",
        "/readyz",
        "/metrics",
        "/nowhere",
        "/cometd",
        f"/cometd?jsonp=f&message={HELLO.decode()}",
    ],
)
async def test_gets_do_not_block_the_event_loop(path: str, server: aiohttp.ClientSession) -> None:
    async with server.get(path, headers={"Sec-Fetch-Site": "same-origin"}) as response:
        assert response.status < 500
        assert await response.read()


async def test_sessions_do_not_block_the_event_loop(server: aiohttp.ClientSession) -> None:
    async def ask(message: dict[str, Any]) -> Any:
        async with server.post("/cometd", json=[message]) as response:
            return (await response.json())[-1]

    hello = await ask({**HANDSHAKE, "ext": {"ack": True}})
    mine = {"clientId": hello["clientId"]}
    connect = {"channel": "/meta/connect", "connectionType": "long-polling", **mine}
    await ask({"channel": "/meta/subscribe", "subscription": "/a", **mine})
    await ask({**connect, "ext": {"ack": 0}})
    held = asyncio.create_task(ask({**connect, "ext": {"ack": 1}}))
    await ask({"channel": "/a", "data": 1, **mine})
    assert (await held)["successful"]
    # Held until its time is over.
    assert (await ask({**connect, "ext": {"ack": 2}}))["successful"]
    assert (await ask({"channel": "/meta/disconnect", **mine}))["successful"]


async def test_sockets_do_not_block_the_event_loop(server: aiohttp.ClientSession) -> None:
    async with server.ws_connect("/cometd") as socket:
        await socket.send_json([HANDSHAKE])
        (hello,) = await socket.receive_json()
        mine = {"clientId": hello["clientId"]}
        await socket.send_json([{"channel": "/meta/subscribe", "subscription": "/a", **mine}])
        await socket.receive_json()
        await socket.send_json([{"channel": "/a", "data": "x" * 300_000, **mine}])
        assert (await socket.receive_json())[0]["data"]
        await socket.ping()
        await socket.send_bytes(b"no text")
        while not socket.closed:
            await socket.receive()
        assert socket.close_code == 1003
