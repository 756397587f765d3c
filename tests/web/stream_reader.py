"""Programs that publish to a channel by POST and read it by GET, whatever happens."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any, Self

import aiohttp
import orjson

LIMIT_S = 60.0


class ReadingProgram(ABC):
    """Reads at one server, over a connection that it keeps, until it is told to end.

    Args:
        url: Returns where the server is now.
    """

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self.heard: list[Any] = []
        # How often each status came, and how often there was none.
        self.statuses: Counter[int] = Counter()
        self.broken: list[str] = []
        self.http = aiohttp.ClientSession()
        # Otherwise it would try again by itself when a connection that it has used breaks.
        self.http._retry_connection = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._read_on())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self.http.close()

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
        check(accepted, self.heard)

    async def _read_on(self) -> None:
        while True:
            try:
                await self.read(self._url())
            except (aiohttp.ClientError, ConnectionError) as error:
                self.broken.append(repr(error))
                await asyncio.sleep(0.05)

    @abstractmethod
    async def read(self, url: str) -> None:
        """Send one request, and read what comes."""


class StreamReader(ReadingProgram):
    """Reads one channel by long-polling `/streams`."""

    def __init__(self, url: Callable[[], str], channel: str, offset: str = "-1") -> None:
        super().__init__(url)
        self._path = f"/streams{channel}"
        self.offset = offset

    async def read(self, url: str) -> None:
        asked = {"offset": self.offset, "live": "long-poll"}
        async with self.http.get(url + self._path, params=asked) as response:
            body = await response.read()
        self.statuses[response.status] += 1
        if response.status in (200, 204):
            self.heard += orjson.loads(body or b"[]")
            self.offset = response.headers["Stream-Next-Offset"]
        elif response.status == 503:
            await asyncio.sleep(0.05)
        else:
            raise AssertionError(f"{response.status}: {body!r}")


class EventReader(ReadingProgram):
    """Reads several channels by `/events`, as a browser does."""

    def __init__(self, url: Callable[[], str], *channels: str, **asked: str) -> None:
        super().__init__(url)
        self._asked = [*[("channel", each) for each in channels], *{"after": "-1", **asked}.items()]
        self._last_id = ""
        self._grown = asyncio.Event()
        self.of_channel: defaultdict[str, list[Any]] = defaultdict(list)
        # All places that it was told, by home.
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        # The events that are no messages.
        self.notices: list[tuple[str, Any]] = []

    async def read(self, url: str) -> None:
        headers = {"Last-Event-ID": self._last_id} if self._last_id else {}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.http.get(
            f"{url}/events", params=self._asked, headers=headers, timeout=timeout
        ) as response:
            self.statuses[response.status] += 1
            assert response.status == 200, await response.text()
            while block := await response.content.readuntil(b"\n\n"):
                self._hear(block.decode())
        await asyncio.sleep(0.05)

    async def hear_of(self, publisher: "Publisher") -> None:
        """Wait until it has all that was published on one of its channels, and check it."""
        await self.hear_of_last(publisher)
        check(publisher.accepted, self.of_channel[publisher.channel])

    async def hear_of_last(self, publisher: "Publisher") -> None:
        """Wait until it has what was published last on one of its channels."""
        heard, wanted = self.of_channel[publisher.channel], publisher.accepted[-1]
        async with asyncio.timeout(LIMIT_S):
            while wanted not in heard:
                await self._grown.wait()
                self._grown.clear()

    def check_ids(self) -> None:
        """Check that no id went back."""
        assert self._places
        for places in self._places.values():
            assert places == sorted(places)

    def _hear(self, block: str) -> None:
        # A connection may end within an event. A browser ignores that part.
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if not block.endswith("\n\n"):
            return
        self._last_id = fields.get("id", self._last_id)
        for place in fields.get("id", "").split("~") if "id" in fields else ():
            home, _, offset = place.partition("-")
            if home == "d":
                # How channels are divided among homes.
                continue
            self._places[home].append(int(offset.rpartition("_")[2] or 0))
        if "event" in fields:
            self.notices.append((fields["event"], orjson.loads(fields["data"])))
        elif "data" in fields:
            event = orjson.loads(fields["data"])
            self.heard.append(event["data"])
            self.of_channel[event["channel"]].append(event["data"])
            self._grown.set()


class Publisher:
    """Publishes growing numbers, one after the other."""

    def __init__(self, url: Callable[[], str], channel: str, **headers: str) -> None:
        self._url = url
        self._http = aiohttp.ClientSession(headers=headers)
        self.channel = channel
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
        message = {"channel": self.channel, "data": number}
        with suppress(aiohttp.ClientError):
            async with self._http.post(self._url() + "/publish", json=[message]) as response:
                results = await response.json(content_type=None)
                return bool(results[0]["successful"])
        return False


def check(accepted: list[int], heard: list[int]) -> None:
    """Check that these were heard, and that none came twice or behind a later one."""
    assert {*accepted} <= {*heard}
    assert all(before < after for before, after in pairwise(heard))
