"""An operator: holds receivers back, and replays dead letters."""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import aiohttp

from tests.chaos.history import HistoryWriter, What
from tests.chaos.processes import Processes
from tests.chaos.talker import Lost

_ANSWER_S = 30.0
_AGAIN_S = 0.1
NAME = "operator"


class Operator:
    """Uses the administration directly, without the proxy."""

    def __init__(self, processes: Processes, history: HistoryWriter, random: Random) -> None:
        self._processes = processes
        self._history = history
        self._random = random

    async def run(self, keys: Sequence[str], stop: asyncio.Event) -> None:
        """Hold a receiver back for a moment, now and then."""
        while not stop.is_set():
            await asyncio.sleep(self._random.uniform(0.5, 2.0))
            key = self._random.choice(keys)
            await self.hold(key)
            await asyncio.sleep(self._random.uniform(0.1, 1.0))
            await self.resume(key)

    async def hold(self, key: str) -> None:
        begun = self._history.begin(NAME, What.HOLD, subscriber=key, by="command")
        try:
            await self._ask("PUT", f"/sessions/{key}/hold", {"reason": "chaos"})
        except Lost as lost:
            begun.info(error=str(lost))
        else:
            begun.ok()

    async def resume(self, key: str) -> None:
        """Resume; try until it is certain."""
        begun = self._history.begin(NAME, What.RESUME, subscriber=key)
        while True:
            try:
                await self._ask("DELETE", f"/sessions/{key}/hold")
            except Lost:
                await asyncio.sleep(_AGAIN_S)
            else:
                begun.ok()
                return

    async def replay(self, **options: Any) -> str:
        """Start a replay of all dead letters; return its id, if the server answered."""
        begun = self._history.begin(NAME, What.REPLAY)
        wanted = {
            "all": True,
            "dry_run": False,
            "filter": {"state": "new"},
            "options": {"rate": 10_000, "canary": 0, "stop_at": 1.0, **options},
        }
        try:
            answer = await self._ask("POST", "/replays", wanted)
        except Lost as lost:
            begun.info(error=str(lost))
            return ""
        begun.ok()
        id: str = answer["id"]
        return id

    async def replayed(self, id: str, within_s: float) -> dict[str, Any]:
        """Wait for the end of the replay, and return it."""
        answer: dict[str, Any] = {}
        for _ in range(int(within_s / _AGAIN_S)):
            answer = await self._ask("GET", f"/replays/{id}")
            if answer["state"] not in ("canary", "running"):
                break
            await asyncio.sleep(_AGAIN_S)
        return answer

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        token = (self._processes.data / "admin-token").read_text().strip()
        timeout = aiohttp.ClientTimeout(total=_ANSWER_S)
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{self._processes.url}/admin/api/v1{path}"
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as http,
                http.request(method, url, json=body) as response,
            ):
                if response.status >= 300:
                    raise Lost(f"status {response.status}: {await response.text()}")
                return await response.json() if response.content_length else None
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise Lost(repr(error)) from error
