"""nginx and HAProxy before one server, as proxies.md has them: clients get what they need."""

import asyncio
from io import BytesIO
from pathlib import Path

import aiohttp
import orjson
import pytest

from holdfast.compose import serving
from holdfast.settings import ChannelSettings, Settings
from tests.chaos.doors import DOORS, program, settings_of
from tests.web.requests import HANDSHAKE

LIMIT_S = 60.0
CHANNEL = "/prices/a"
RULES = {"/prices/**": ChannelSettings(history=9)}
JSON = {"Content-Type": "application/json"}
PRICES = [{"price": 5}, {"price": 6}]


@pytest.mark.parametrize("kind", DOORS)
async def test_clients_and_scripts_reach_what_they_need_and_nothing_else(
    kind: str, tmp_path: Path
) -> None:
    settings = Settings(port=0, data=tmp_path / "data", channels=RULES)
    async with asyncio.timeout(LIMIT_S), serving(settings) as url:
        place = url.removeprefix("http://").removesuffix("/cometd")
        config = settings_of(kind, "proxies", {"127.0.0.1:8080": place})
        async with program(kind, tmp_path, config) as door, aiohttp.ClientSession(door.url) as http:
            prices = [{"channel": CHANNEL, "data": each} for each in PRICES]
            # More than nginx passes on unless it is told to.
            large = [{"channel": "/large", "data": "x" * 1_900_000}]
            for said in (prices, large):
                body = BytesIO(orjson.dumps(said))
                async with http.post("/publish", data=body, headers=JSON) as answer:
                    assert answer.status == 200
            for path in ("/cometd/handshake", "/bayeux"):
                async with http.post(path, json=[HANDSHAKE]) as answer:
                    assert (await answer.json())[0]["successful"]
            async with http.get(f"/streams{CHANNEL}") as answer:
                assert await answer.json() == PRICES
            async with http.get("/events", params={"channel": CHANNEL}) as answer:
                assert answer.status == 200
                # A proxy that keeps a response back until it ends would never show it.
                third = {"channel": CHANNEL, "data": {"price": 7}}
                async with http.post("/publish", json=third) as published:
                    assert published.status == 200
                await answer.content.readuntil(b'{"price":7}')
            async with http.ws_connect("/cometd") as socket:
                await socket.send_json([HANDSHAKE])
                assert (await socket.receive_json())[0]["successful"]
            for path in ("/", "/metrics", "/readyz", "/admin/api/v1/about", "/publisher"):
                async with http.get(path) as answer:
                    assert answer.status == 404, path
