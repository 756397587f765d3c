"""Sockets whose session the server has ended."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.compose import serving
from holdfast.settings import Settings
from holdfast.web.websockets import open_socket
from tests.abuse.attacker import HANDSHAKE
from tests.slowness import times_slower

pytestmark = pytest.mark.untraced

CONNECT = {"channel": "/meta/connect", "connectionType": "websocket"}
# How long a socket waits for another handshake.
GOODBYE_S = 1.0 * times_slower(most=4.0)


@pytest.fixture
async def socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    monkeypatch.setattr(open_socket, "_GOODBYE_S", GOODBYE_S)
    given: dict[str, Any] = {
        "port": 0,
        "data": tmp_path,
        "extension": ["tests.clients.applications:services"],
    }
    async with (
        serving(Settings(**given)) as url,
        aiohttp.ClientSession(url) as client,
        client.ws_connect("/cometd") as socket,
    ):
        yield socket


async def _say(socket: aiohttp.ClientWebSocketResponse, message: dict[str, Any]) -> Any:
    await socket.send_json([message])
    return (await socket.receive_json())[0]


async def _greet(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    """The clientId of a new session."""
    while True:
        reply = await _say(socket, HANDSHAKE)
        if reply["successful"]:
            return {"clientId": reply["clientId"]}
        # While its event loop lags, as it may when it starts here, a server refuses handshakes.
        await asyncio.sleep(0.1)


async def test_a_socket_is_closed_if_a_connect_crosses_the_server_s_disconnect(
    socket: aiohttp.ClientWebSocketResponse,
) -> None:
    mine = await _greet(socket)
    goodbye = await _say(socket, {"channel": "/service/eject", "data": {}, **mine})
    assert goodbye == {"channel": "/meta/disconnect", "successful": True}
    assert (await socket.receive_json())[0]["channel"] == "/service/eject"
    assert (await _say(socket, {**CONNECT, **mine}))["successful"] is False
    assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
    assert socket.close_code == 1000


async def test_a_socket_stays_open_for_a_client_that_handshakes_again(
    socket: aiohttp.ClientWebSocketResponse,
) -> None:
    mine = await _greet(socket)
    await _say(socket, {"channel": "/service/eject", "data": {}, **mine})
    await socket.receive_json()
    other = await _greet(socket)
    connect = {**CONNECT, **other, "advice": {"timeout": round(1500 * GOODBYE_S)}}
    assert (await _say(socket, {**CONNECT, **other}))["successful"] is True
    assert (await _say(socket, connect))["successful"] is True
    assert not socket.closed


async def test_a_socket_is_closed_if_the_session_that_began_on_it_again_is_ended_soon(
    socket: aiohttp.ClientWebSocketResponse,
) -> None:
    for _ in range(2):
        mine = await _greet(socket)
        await _say(socket, {"channel": "/service/eject", "data": {}, **mine})
        await socket.receive_json()
    assert (await socket.receive(timeout=20)).type is aiohttp.WSMsgType.CLOSE
