"""How long a shard that leaves follows the others, which leave at the same time."""

import asyncio
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
        names = ("settings", "url", "bayeux", "ticker", "heads", "websockets", "listener", "tasks")
        parts: dict[str, Any] = {each: Mock() for each in names}
        self.server = RunningServer(
            **parts,
            storage=storage,
            books=Mock(close=AsyncMock()),
            replays=Mock(close=AsyncMock()),
            doors=Mock(pause=AsyncMock(), settle=AsyncMock()),
            succession=Mock(settled=self._settled),
            sharding=Mock(pause=self._stop_following),
        )

    async def _answered(self) -> None:
        self.steps.append("answered")

    async def _settled(self) -> None:
        self.steps.append("settled")
        self.has_settled.set()
        await self.others.wait()

    async def _stop_following(self) -> None:
        self.steps.append("follows no longer")


async def test_a_shard_follows_others_until_they_have_finished_what_their_clients_have_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running_server, "settle", Mock())
    monkeypatch.setattr(running_server, "unsettled", lambda _: None)
    shard = Leaving()
    async with asyncio.TaskGroup() as group:
        group.create_task(shard.server.leave())
        await shard.has_settled.wait()
        assert shard.steps == ["answered", "settled"]
        shard.others.set()
    # What others have finished may have come here.
    assert shard.steps == ["answered", "settled", "answered", "follows no longer"]
    assert shard.server.has_left
