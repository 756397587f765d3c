"""Programs that publish to a channel by POST and read it by GET, whatever happens."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any, Self

import aiohttp
import orjson

LIMIT_S = 60.0


class StreamReader:
    """Reads one channel at one server, over a connection that it keeps.

    Args:
        url: Returns where the server is now.
    """

    def __init__(self, url: Callable[[], str], channel: str, offset: str = "-1") -> None:
        self._url = url
        self._path = f"/streams{channel}"
        self.offset = offset
        self.heard: list[Any] = []
        # How often each status came, and how often there was none.
        self.statuses: Counter[int] = Counter()
        self.broken: list[str] = []
        self._http = aiohttp.ClientSession()
        # Otherwise it would try again by itself when a connection that it has used breaks.
        self._http._retry_connection = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._read_on())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._http.close()

    async def hear(self, last: Any) -> None:
        """Wait until this message has come."""
        async with asyncio.timeout(LIMIT_S):
            while last not in self.heard:
                # What the task has raised is raised here.
                assert self._task is not None
                assert not self._task.done(), self._task.result()
                await asyncio.sleep(0.05)

    def check_heard(self, accepted: list[int]) -> None:
        """Check that it has all of these numbers, and that none came twice or behind a later."""
        assert {*accepted} <= {*self.heard}
        assert all(before < after for before, after in pairwise(self.heard))

    async def _read_on(self) -> None:
        while True:
            asked = {"offset": self.offset, "live": "long-poll"}
            try:
                async with self._http.get(self._url() + self._path, params=asked) as response:
                    body = await response.read()
            except (aiohttp.ClientError, ConnectionError) as error:
                self.broken.append(repr(error))
                await asyncio.sleep(0.05)
                continue
            self.statuses[response.status] += 1
            if response.status in (200, 204):
                self.heard += orjson.loads(body or b"[]")
                self.offset = response.headers["Stream-Next-Offset"]
            elif response.status == 503:
                await asyncio.sleep(0.05)
            else:
                raise AssertionError(f"{response.status}: {body!r}")


class Publisher:
    """Publishes growing numbers, one after the other."""

    def __init__(self, url: str, channel: str) -> None:
        self._http = aiohttp.ClientSession(url)
        self._channel = channel
        self._last = 0
        self.accepted: list[int] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def publish(self, count: int) -> None:
        """Publish until so many more are accepted."""
        wanted = len(self.accepted) + count
        async with asyncio.timeout(LIMIT_S):
            while len(self.accepted) < wanted:
                self._last += 1
                if await self._is_accepted(self._last):
                    self.accepted.append(self._last)
                else:
                    await asyncio.sleep(0.05)

    async def _is_accepted(self, number: int) -> bool:
        message = {"channel": self._channel, "data": number}
        with suppress(aiohttp.ClientError):
            async with self._http.post("/publish", json=[message]) as response:
                results = await response.json(content_type=None)
                return bool(results[0]["successful"])
        return False
