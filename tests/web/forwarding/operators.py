"""An operator of several workers, at the administration of any."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.web.forwarding.workers import Workers
from tests.web.people import Json, until

API = "/admin/api/v1"


class Operator:
    """A client of the administration of one worker."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.http = http

    async def ask(self, method: str, path: str, **given: Any) -> tuple[int, Json]:
        async with self.http.request(method, API + path, **given) as response:
            return response.status, await response.json() if response.status != 204 else {}

    async def get(self, path: str, **params: Any) -> Json:
        """What a path has, once all shards have answered: a loaded machine may be late."""
        found: Json = {}
        for _ in range(20):
            status, found = await self.ask("GET", path, params=params)
            assert status in (200, 503), found
            if status == 200 and not found.get("unanswered"):
                return found
        pytest.fail(f"GET {path}: {found}")

    async def audited(self, count: int) -> list[Json]:
        """Return the audit once it has so many entries: no change waits until its own is stored."""
        entries: list[Json] = []

        async def has_all() -> bool:
            entries[:] = (await self.get("/audit"))["items"]
            return len(entries) >= count

        await until(has_all)
        return entries

    async def change(self, method: str, path: str, body: Json | None = None, **params: Any) -> Json:
        status, found = await self.ask(method, path, json=body, params=params)
        assert status < 300, found
        return found


@asynccontextmanager
async def operator(
    workers: Workers, home: Path, door: int = 0, token: str = "admin-token"
) -> AsyncIterator[Operator]:
    secret = (home / "data" / token).read_text().strip()
    headers = {"Authorization": f"Bearer {secret}", "X-Operator": "ada"}
    async with aiohttp.ClientSession(workers.urls[door], headers=headers) as http:
        yield Operator(http)
