"""Workers are backed up under traffic, and go on from the backup elsewhere."""

import asyncio
import signal
from pathlib import Path

import pytest

from holdfast.offline.backup import back_up
from holdfast.offline.restore import restore
from tests.offline.test_backups import settings
from tests.web.sharding.fleet import Fleet, Visitor, fleet
from tests.web.sharding.test_failures import firsts, write

pytestmark = pytest.mark.slow

# Their homes are different shards.
NAMES = ("joe/1", "ann/1", "bob/1")


async def readers(workers: Fleet) -> list[Visitor]:
    return [Visitor(workers, place % 2, name) for place, name in enumerate(NAMES)]


async def test_named_sessions_of_all_workers_go_on_from_a_backup(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    async with fleet(tmp_path) as workers, Visitor(workers, 0) as writer:
        before = await readers(workers)
        for each in before:
            assert (await each.subscribe("/news"))["successful"]
        accepted = await write(writer, 0, 40)
        writing = asyncio.create_task(write(writer, 100, 60))
        found = await back_up(settings(workers.data), tmp_path / "backup")
        assert [each.shard for each in found.stores] == [0, 1]
        assert found.spread_ms < 5000
        later = await writing
        for each in before:
            await each.__aexit__()
        for shard in (0, 1):
            await workers.end(shard, signal.SIGTERM)
    await restore(settings(elsewhere / "data"), tmp_path / "backup")
    async with fleet(elsewhere) as restored, Visitor(restored, 1) as writer:
        after = await readers(restored)
        more = await write(writer, 1000, 10)
        assert len(more) == 10
        for each in after:
            await each.hear(accepted | more)
            # A message on its way between two workers may be there twice: once as it was
            # published, and once more if its publisher repeated it; here nobody does.
            assert len(each.heard) == len({*each.heard})
            heard = firsts(each.heard)
            assert accepted | more <= {*heard} <= accepted | more | later
            assert heard == sorted(heard)
            await each.__aexit__()
