"""In which order a shard comes to rest, and how long it follows others that leave with it."""

import asyncio
from functools import partial
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from holdfast.compose import running_server
from holdfast.compose.running_server import RunningServer


class Leaving:
    """A shard that has nothing to finish, and notes in which order it comes to rest."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.has_settled, self.others = asyncio.Event(), asyncio.Event()
        storage = Mock(write_given=AsyncMock(), give=AsyncMock())
        storage.store.answered = self._answered
        storage.right.leave = lambda: self.steps.append("is silent")
        storage.is_fenced = False
        names = ("settings", "url", "bayeux", "ticker", "heads", "tasks")
        parts: dict[str, Any] = {each: Mock() for each in names}
        parts["bayeux"].stop = lambda _, done: done()
        self.server = RunningServer(
            **parts,
            storage=storage,
            websockets=Mock(close_drained=AsyncMock(), close_all=AsyncMock()),
            listener=Mock(drain=AsyncMock()),
            books=Mock(close=AsyncMock()),
            replays=Mock(close=AsyncMock()),
            figures=Mock(close=AsyncMock()),
            read_again=Mock(),
            doors=Mock(pause=AsyncMock(), settle=AsyncMock(), listeners=self._listeners()),
            succession=Mock(settled=self._settled),
            sharding=Mock(pause=self._stop_following),
        )

    def _listeners(self) -> dict[str, Any]:
        async def close(name: str) -> None:
            self.steps.append(f"{name} closed")

        return {name: Mock(close=partial(close, name)) for name in ("main", "admin")}

    async def _answered(self) -> None:
        self.steps.append("answered")

    async def _settled(self) -> None:
        self.steps.append("settled")
        self.has_settled.set()
        await self.others.wait()

    async def _stop_following(self) -> None:
        self.steps.append("follows no longer")


@pytest.fixture
def shard(monkeypatch: pytest.MonkeyPatch) -> Leaving:
    monkeypatch.setattr(running_server, "settle", Mock())
    monkeypatch.setattr(running_server, "unsettled", lambda _: None)
    return Leaving()


async def test_a_shard_follows_others_until_they_have_finished_what_their_clients_have_begun(
    shard: Leaving,
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(shard.server.leave())
        await shard.has_settled.wait()
        assert shard.steps == ["answered", "settled"]
        shard.others.set()
    # What others have finished may have come here.
    assert shard.steps == ["answered", "settled", "answered", "follows no longer", "is silent"]
    assert shard.server.has_left


async def test_a_server_that_stops_answers_operators_before_it_falls_silent(shard: Leaving) -> None:
    shard.others.set()
    await shard.server.stop(1.0)
    order = [each for each in shard.steps if "closed" in each or "silent" in each]
    assert order == ["main closed", "admin closed", "is silent"]
