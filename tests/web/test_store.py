"""The probe tells whether the store can be relied upon; whoever needs none is served anyway."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from app.compose import serving
from app.settings import Settings
from tests.store.servers import ValkeyServer

PATIENCE_S = 10.0


def settings(home: Path, **given: Any) -> Settings:
    return Settings(port=0, data=home, **given)


async def ready(client: aiohttp.ClientSession) -> str:
    async with client.get("/readyz") as response:
        return f"{response.status} {(await response.text()).strip()}"


async def becomes(client: aiohttp.ClientSession, expected: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await ready(client) != expected:  # noqa: ASYNC110 - it is told over HTTP alone
            await asyncio.sleep(0.02)


async def test_the_probe_says_that_the_store_is_away_and_serving_goes_on(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        async with (
            serving(settings(tmp_path, redis=valkey.url)) as url,
            aiohttp.ClientSession(url) as client,
        ):
            assert await ready(client) == "200 ready"
            valkey.kill()
            await becomes(client, "503 the store cannot be reached")
            async with client.get("/healthz") as response:
                assert response.status == 200
            async with client.post("/cometd", json=[{"channel": "/meta/handshake"}]) as response:
                assert response.status == 200
            valkey.start()
            await becomes(client, "200 ready")


async def test_a_server_without_a_url_has_a_store_of_its_own(tmp_path: Path) -> None:
    async with serving(settings(tmp_path)) as url, aiohttp.ClientSession(url) as client:
        assert await ready(client) == "200 ready"
        assert (tmp_path / "store").is_dir()


async def test_a_session_that_was_kept_has_its_whole_time_to_come_back(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        jar = aiohttp.CookieJar(unsafe=True)
        kept = settings(tmp_path, redis=valkey.url)
        async with serving(kept) as url, aiohttp.ClientSession(url, cookie_jar=jar) as client:
            handshake = {
                "channel": "/meta/handshake",
                "version": "1.0",
                "supportedConnectionTypes": ["long-polling"],
                "ext": {"ack": True, "delivery": {"session": "joe/1", "retries": 0}},
            }
            async with client.post("/cometd", json=[handshake]) as response:
                client_id = (await response.json())[0]["clientId"]
        async with serving(kept) as url, aiohttp.ClientSession(url, cookie_jar=jar) as client:
            await asyncio.sleep(0.3)
            connect = {
                "channel": "/meta/connect",
                "clientId": client_id,
                "connectionType": "long-polling",
                "advice": {"timeout": 0},
                "ext": {"ack": 0},
            }
            async with client.post("/cometd", json=[connect]) as response:
                assert (await response.json())[0]["successful"] is True
