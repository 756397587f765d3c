"""The connection to Redis: refused at the start if unfit, told by the probe when it is lost."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from app.compose import serving
from app.settings import Settings
from app.store import connection
from app.store.connection import Store, StoreUnavailable
from tests.web.fake_redis import FakeRedis, fake_redis

# A probe that takes longer is taken for a failed one by whoever asks.
PROBE_S = 1.0


@pytest.fixture
async def redis() -> AsyncIterator[FakeRedis]:
    async with fake_redis() as redis:
        yield redis


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_PATIENCE_S", 0.3)


def settings(home: Path, redis: FakeRedis) -> Settings:
    given: dict[str, Any] = {"port": 0, "data": home, "redis": redis.url}
    return Settings(**given)


async def opened(url: str) -> Store:
    store = Store(url)
    try:
        await store.open()
    except StoreUnavailable:
        await store.close()
        raise
    return store


async def test_a_store_that_answers_is_there(redis: FakeRedis) -> None:
    store = await opened(redis.url)
    assert await store.is_there()
    await store.close()


@pytest.mark.parametrize("version", ["7.0.0", "7.2.4", "8.4.0", "10.0.1"])
async def test_versions_from_7_on_are_taken(version: str) -> None:
    async with fake_redis(version) as redis:
        await (await opened(redis.url)).close()


@pytest.mark.parametrize("version", ["6.2.14", "5.0", "", "garbage"])
async def test_an_older_or_unknown_version_is_refused(version: str) -> None:
    async with fake_redis(version) as redis:
        with pytest.raises(StoreUnavailable, match="too old"):
            await opened(redis.url)


async def test_a_store_that_is_not_there_is_refused(redis: FakeRedis) -> None:
    await redis.close()
    begin = time.monotonic()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await opened(redis.url)
    assert time.monotonic() - begin < 10


async def test_a_store_that_lets_nobody_in_is_refused_without_its_password(
    redis: FakeRedis,
) -> None:
    redis.password = "s3cr3t"
    with pytest.raises(StoreUnavailable) as refused:
        await opened(redis.url.replace("//", "//user:wrong-secret@"))
    assert "wrong-secret" not in str(refused.value)


async def test_a_store_that_goes_and_comes_back_is_seen_so(redis: FakeRedis) -> None:
    store = await opened(redis.url)
    await redis.close()
    begin = time.monotonic()
    assert not await store.is_there()
    assert time.monotonic() - begin < PROBE_S
    await redis.open()
    assert await store.is_there()
    await store.close()


async def test_a_store_that_hangs_is_not_there(redis: FakeRedis) -> None:
    store = await opened(redis.url)
    redis.is_silent = True
    begin = time.monotonic()
    assert not await store.is_there()
    assert time.monotonic() - begin < PROBE_S
    await store.close()


async def test_the_probe_says_that_redis_is_away_and_serving_goes_on(
    redis: FakeRedis, tmp_path: Path
) -> None:
    async with serving(settings(tmp_path, redis)) as url, aiohttp.ClientSession() as client:

        async def probe(path: str) -> tuple[int, str]:
            async with client.get(url + path) as response:
                return response.status, await response.text()

        assert await probe("/readyz") == (200, "ready\n")
        await redis.close()
        assert await probe("/readyz") == (503, "redis cannot be reached\n")
        assert await probe("/healthz") == (200, "ok\n")
        async with client.post(url + "/cometd", json=[{"channel": "/meta/handshake"}]) as response:
            assert response.status == 200
        await redis.open()
        assert await probe("/readyz") == (200, "ready\n")


async def test_many_probes_at_once_while_redis_hangs_all_come_back(
    redis: FakeRedis, tmp_path: Path
) -> None:
    async with serving(settings(tmp_path, redis)) as url, aiohttp.ClientSession() as client:
        redis.is_silent = True

        async def status() -> int:
            async with client.get(f"{url}/readyz") as response:
                return response.status

        async with asyncio.timeout(2 * PROBE_S):
            assert set(await asyncio.gather(*(status() for _ in range(20)))) == {503}
