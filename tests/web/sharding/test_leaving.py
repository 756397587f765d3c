"""How long a shard that leaves follows the others, which leave at the same time."""

import asyncio
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from holdfast.compose import running_server
from holdfast.compose.running_server import RunningServer


class Leaving:
    """A shard that has nothing to finish, and notes when it follows no longer."""

    def __init__(self) -> None:
        self.stopped_at = 0.0
        storage = Mock(write_given=AsyncMock(), give=AsyncMock())
        storage.store.answered = AsyncMock()
        names = ("settings", "url", "bayeux", "ticker", "heads", "websockets", "listener", "tasks")
        parts: dict[str, Any] = {each: Mock() for each in names}
        self.server = RunningServer(
            **parts,
            storage=storage,
            books=Mock(close=AsyncMock()),
            replays=Mock(close=AsyncMock()),
            doors=Mock(pause=AsyncMock(), settle=AsyncMock()),
            sharding=Mock(pause=self._stop_following),
        )

    async def _stop_following(self) -> None:
        self.stopped_at = asyncio.get_running_loop().time()


async def test_a_shard_without_work_follows_others_until_they_may_have_finished_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running_server, "settle", Mock())
    monkeypatch.setattr(running_server, "unsettled", lambda _: None)
    leaving, began = Leaving(), asyncio.get_running_loop().time()
    await leaving.server.leave()
    assert leaving.server.has_left
    assert leaving.stopped_at >= began + running_server._FOLLOWING_S
