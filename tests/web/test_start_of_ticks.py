"""When a starting server begins to tick, which lets messages and sessions expire."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.compose import running
from holdfast.compose.storage import Storage
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.web.ticker import Ticker


async def test_nothing_expires_while_what_was_given_may_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start may fail until then: the next one finds in the store what the given names there."""
    steps: list[str] = []
    start, remove_given = Ticker.start, Storage.remove_given

    def begin(ticker: Ticker, *parts: Any) -> None:
        steps.append("ticks")
        start(ticker, *parts)

    async def remove(storage: Storage) -> None:
        await remove_given(storage)
        steps.append("given removed")

    monkeypatch.setattr(Ticker, "start", begin)
    monkeypatch.setattr(Storage, "remove_given", remove)
    given: dict[str, Any] = {"data": tmp_path, "port": 0, "durability": "memory"}
    async with running(Settings(**given), Succession()) as server:
        assert steps == ["given removed", "ticks"]
        await server.stop(1.0)
