"""The probe says whether the store is available; clients that need none are served anyway."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.compose import serving
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from tests.store.servers import ValkeyServer

TIMEOUT_S = 60.0


def settings(home: Path, **given: Any) -> Settings:
    return Settings(port=0, data=home, **given)


async def ready(client: aiohttp.ClientSession) -> str:
    async with client.get("/readyz") as response:
        return f"{response.status} {(await response.text()).strip()}"


async def becomes(client: aiohttp.ClientSession, expected: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while await ready(client) != expected:  # noqa: ASYNC110 - it is told over HTTP alone
            await asyncio.sleep(0.02)


async def is_stored_again(valkey: ValkeyServer, namespace: str) -> None:
    held = RedisKeys(namespace).held
    async with asyncio.timeout(TIMEOUT_S):
        while not valkey.ask("EXISTS", held):  # noqa: ASYNC110 - it is seen in the store alone
            await asyncio.sleep(0.02)


async def test_the_probe_reports_that_the_store_is_away_and_serving_continues(
    tmp_path: Path,
) -> None:
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


async def test_a_restored_session_has_its_whole_interval_to_reconnect(tmp_path: Path) -> None:
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


async def test_the_log_has_the_number_of_restored_sessions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with ValkeyServer() as valkey:
        kept = settings(tmp_path, redis=valkey.url)
        async with serving(kept) as url, aiohttp.ClientSession(url) as client:
            handshake = {
                "channel": "/meta/handshake",
                "version": "1.0",
                "supportedConnectionTypes": ["long-polling"],
                "ext": {"ack": True, "delivery": {"session": "joe/1"}},
            }
            async with client.post("/cometd", json=[handshake]) as response:
                assert (await response.json())[0]["successful"] is True
        async with serving(kept):
            assert "restored 1 session" in caplog.messages


async def test_a_channel_that_is_held_back_stays_so_when_the_server_starts_again(
    tmp_path: Path,
) -> None:
    with ValkeyServer() as valkey:
        strict = settings(tmp_path, redis=valkey.url, **STRICT)
        async with serving(strict) as url, aiohttp.ClientSession(url) as client:
            await refuse(client, tmp_path)
            (held,) = await reasons(client, tmp_path)
            assert held[1].startswith("1 of 1 receivers refused ")
        async with serving(strict) as url, aiohttp.ClientSession(url) as client:
            assert await reasons(client, tmp_path) == [held]
            valkey.ask("FLUSHALL")
            await say(client, HANDSHAKE)
            await is_stored_again(valkey, strict.namespace)
        async with serving(strict) as url, aiohttp.ClientSession(url) as client:
            assert await reasons(client, tmp_path) == [held], "the store was told again"
            await held_channels(client, tmp_path, release="/a")
        async with serving(strict) as url, aiohttp.ClientSession(url) as client:
            assert await held_channels(client, tmp_path) == []


async def test_a_server_without_a_guard_releases_the_channels_that_its_predecessor_held(
    tmp_path: Path,
) -> None:
    with ValkeyServer() as valkey:
        strict = settings(tmp_path, redis=valkey.url, **STRICT)
        async with serving(strict) as url, aiohttp.ClientSession(url) as client:
            await refuse(client, tmp_path)
        free = settings(tmp_path, redis=valkey.url)
        async with serving(free) as url, aiohttp.ClientSession(url) as client:
            assert await held_channels(client, tmp_path) == []
        async with serving(strict) as url, aiohttp.ClientSession(url) as client:
            assert await held_channels(client, tmp_path) == []


STRICT = {
    "channels": {"/a": {"guard": True}},
    "guard_receivers": 1,
    "guard_messages": 1,
    "guard_window": 6000,
}
HANDSHAKE = {
    "channel": "/meta/handshake",
    "version": "1.0",
    "supportedConnectionTypes": ["long-polling"],
    "ext": {"delivery": {"session": "joe/1"}},
}


async def say(client: aiohttp.ClientSession, *messages: dict[str, Any]) -> list[Any]:
    async with client.post("/cometd", json=list(messages)) as response:
        answer: list[Any] = await response.json()
        return answer


async def refuse(client: aiohttp.ClientSession, data: Path) -> None:
    """Subscribe, accept one message, and refuse all others until the guard holds the channel."""
    await becomes(client, "200 ready")
    async with client.post("/cometd", json=[HANDSHAKE]) as response:
        (reply,) = await response.json()
        # The jar takes no cookies from an address.
        own = response.cookies["BAYEUX_BROWSER"].value
    client.cookie_jar.update_cookies({"BAYEUX_BROWSER": own})
    who = {"clientId": reply["clientId"]}
    connect = {"channel": "/meta/connect", "connectionType": "long-polling", **who}
    await say(client, {"channel": "/meta/subscribe", "subscription": "/a", **who})
    verdict: dict[str, Any] = {"state": "OK"}
    async with asyncio.timeout(TIMEOUT_S):
        while not await held_channels(client, data):
            await say(client, {"channel": "/a", "data": 1, **who})
            event, _ = await say(client, connect)
            verdict["seq"] = event["ext"]["delivery"]["seq"]
            await say(client, {"channel": "/service/delivery", "data": verdict, **who})
            verdict = {"errorCode": "user.update.error"}
            # The administration answers a limited number of requests in a row.
            await asyncio.sleep(0.05)


async def reasons(client: aiohttp.ClientSession, data: Path) -> list[tuple[str, str, int]]:
    """The reason and the time of each channel hold."""
    held = await held_channels(client, data)
    return [(each["channel"], each["reason"], each["since"]) for each in held]


async def held_channels(
    client: aiohttp.ClientSession, data: Path, *, release: str | None = None
) -> list[Any]:
    """The channels that are held back, after one of them was released."""
    token = (data / "admin-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    path = "/admin/api/v1/held-channels"
    if release is not None:
        async with client.delete(f"{path}?channel={release}", headers=headers) as response:
            assert response.status == 200
    async with client.get(path, headers=headers) as response:
        items: list[Any] = (await response.json())["items"]
        return items
