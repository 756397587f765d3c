"""Before a division, each shard takes what the others have for it."""

import signal
from pathlib import Path
from typing import Any

import pytest

from holdfast.offline.divide import divide
from holdfast.offline.reshard import Plan, Progress
from holdfast.settings import Settings
from tests.serving import as_toml, environment
from tests.store.servers import ValkeyServer
from tests.web.sharding.fleet import AT_SECOND, Visitor, fleet
from tests.web.sharding.worker import RULES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # starts several processes


def homes_in(directory: Path) -> list[Path]:
    homes = [directory / "two", directory / "three"]
    for each in homes:
        each.mkdir()
    return homes


async def test_a_shard_takes_what_came_while_it_was_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server that runs for a moment is to be the one that is tested.
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    two, three = homes_in(tmp_path)
    said: list[str] = []
    with ValkeyServer() as valkey:
        async with (
            fleet(two, 2, valkey.url) as workers,
            Visitor(workers, 0) as writer,
            Visitor(workers, 1, f"{AT_SECOND}/1") as reader,
        ):
            assert (await reader.subscribe("/news"))["successful"]
            assert await writer.publish("/news", 0)
            await reader.hear({0})
            await reader.listen()
            await workers.end(1, signal.SIGKILL)
            for number in range(1, 6):
                assert await writer.publish("/news", number)
            await workers.end(0, signal.SIGKILL)
        given: dict[str, Any] = {"redis": valkey.url, "data": str(tmp_path / "data"), "chat": False}
        given["channels"] = RULES
        config = tmp_path / "holdfast.toml"
        config.write_text(as_toml(given))
        told = Progress(say=said.append)
        report = await divide(Settings(**given), Plan(3), told, config)
        assert (report.before, report.after) == (2, 3)
        first, *more = said
        until_it_has = "a server without clients runs until it has"
        assert first == f"shard 1 has not taken 5 entries of shard 0: {until_it_has}"
        # While that server stops, its workers may ask each other something: it runs once more.
        assert all(each.endswith(until_it_has) and "5 entries" not in each for each in more)
        async with (
            fleet(three, 3, valkey.url) as workers,
            Visitor(workers, 2, f"{AT_SECOND}/1") as reader,
        ):
            await reader.hear({*range(1, 6)})
            assert [each for each in reader.heard if each] == [*range(1, 6)]
