"""Figures of the past against our books: restarts lose nothing, kills what was not written."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import pytest

from tests.chaos.test_standby import Pair
from tests.chaos.test_webhooks_of_workers import has_restarted
from tests.chaos.test_workers import Deployment, until
from tests.web.people import until as answered
from tests.web.stream_reader import Publisher

pytestmark = [pytest.mark.slow, pytest.mark.untraced, pytest.mark.timeout(300)]

CHANNEL = "/orders/new"
# A reading is good for as long.
FRESH_S = 1.5


@pytest.fixture(params=[1, 3])
def deployment(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Deployment]:
    made = Deployment(tmp_path, request.param)
    yield made
    made.close()


class Operated(Protocol):
    """A server whose operator has the token in its data directory."""

    data: Path

    @property
    def url(self) -> str: ...


class Reader:
    """Reads the figures, of all workers and of each."""

    def __init__(self, deployment: Operated, http: aiohttp.ClientSession) -> None:
        self._deployment, self._http = deployment, http
        token = (deployment.data / "admin-token").read_text().strip()
        self._headers = {"Authorization": f"Bearer {token}"}

    async def ask(self, path: str, **params: Any) -> Any:
        """Return figures once all workers have answered: a loaded machine may be late."""
        url, found = f"{self._deployment.url}/admin/api/v1/figures/{path}", None
        for _ in range(20):
            async with self._http.get(url, params=params, headers=self._headers) as response:
                found = await response.json()
            if response.status == 200 and not found.get("unanswered"):
                return found
            await asyncio.sleep(0.5)
        pytest.fail(f"{path}: {found}")

    async def published(self, **params: Any) -> int:
        """Return how many messages were published, by the rows of all minutes."""
        await asyncio.sleep(FRESH_S)
        found = await self.ask("past", **params)
        return sum(row["published"] for row in found["rows"])

    async def starts(self) -> int:
        return sum(row["starts"] for row in (await self.ask("past"))["rows"])


async def test_figures_agree_with_books_over_restarts_and_kills(deployment: Deployment) -> None:
    async with (
        Publisher(lambda: deployment.url, CHANNEL) as publisher,
        aiohttp.ClientSession() as http,
    ):
        reader, books = Reader(deployment, http), publisher.accepted
        await publisher.publish(20)
        assert await reader.published() == len(books)
        assert "failed" not in await deployment.restart()
        await publisher.publish(10)
        # A restart loses nothing, and invents nothing.
        assert await reader.published() == len(books)
        assert await reader.starts() == 2 * deployment.count
        each = [await reader.published(shard=shard) for shard in range(deployment.count)]
        assert sum(each) == len(books)
        # A kill loses what was not written, which is what came after the restart.
        os.kill(deployment.workers()[0], signal.SIGKILL)
        await until(deployment.are_complete)
        await publisher.publish(10)
        after_kill = await reader.published()
        assert 20 + 10 <= after_kill <= publisher._last
        tried = publisher._last
        await answered(partial(has_restarted, deployment))
        await publisher.publish(5)
        # Publishes that failed may have been counted.
        assert after_kill + 5 <= await reader.published() <= after_kill + publisher._last - tried
        top = await reader.ask("top", by="channels")
        [channel] = [each for each in top["items"] if each["name"] == CHANNEL]
        assert channel["count"] == channel["at_most"] == await reader.published()


@pytest.mark.parametrize("workers", [1, 3])
async def test_a_standby_goes_on_with_the_figures(tmp_path: Path, workers: int) -> None:
    async with AsyncExitStack() as stack:
        pair = Pair(tmp_path, stack, workers)
        await pair.begin()
        http = await stack.enter_async_context(aiohttp.ClientSession())
        server = pair.first
        publisher = await stack.enter_async_context(Publisher(lambda: server.url, CHANNEL))
        await publisher.publish(20)
        # This writes the figures.
        assert await pair.first.restart() == ""
        await publisher.publish(10)
        await pair.first.kill_all()
        await pair.second.serves()
        server, reader = pair.second, Reader(pair.second, http)
        published, starts = await reader.published(), await reader.starts()
        assert 20 <= published <= 20 + 10
        # Those of the first, of its restart unless that was not written, and of the standby.
        assert 2 * workers <= starts <= 3 * workers
        pair.first.begin()
        await pair.first.waits()
        await publisher.publish(5)
        # One that stops in order loses nothing.
        assert await pair.second.stop() == 0
        await pair.first.serves()
        reader = Reader(pair.first, http)
        assert await reader.published() == published + 5
        assert await reader.starts() == starts + workers
