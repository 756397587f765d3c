"""When a starting server goes on with replays that the one before it left."""

from pathlib import Path
from typing import Any

import pytest

from holdfast import compose
from holdfast.compose import listeners, running
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.store.replays.control import Replays


async def test_replays_go_on_when_the_server_serves_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    open_listeners = listeners.open_listeners

    async def listen(*args: Any) -> Any:
        found = await open_listeners(*args)
        steps.append("serves")
        return found

    async def resume(_: Replays) -> int:
        steps.append("replays")
        return 0

    monkeypatch.setattr(compose, "open_listeners", listen)
    monkeypatch.setattr(Replays, "resume", resume)
    given: dict[str, Any] = {"data": tmp_path, "port": 0, "durability": "memory"}
    async with running(Settings(**given), Succession()) as server:
        resuming = server.replays._resuming
        assert resuming is not None
        await resuming
        assert steps == ["serves", "replays"]
        await server.stop(1.0)
