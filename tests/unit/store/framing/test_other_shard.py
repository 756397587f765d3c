"""What a shard reads in the store of another one."""

import asyncio
from typing import Any

from holdfast.store.format.keys import RedisKeys
from holdfast.store.framing.other_shard import OtherStore
from holdfast.web.tasks import cancel


class Primary:
    """A server that accepts no connection."""

    former = address = None
    replacements = 0

    async def connect(self, *_: object) -> Any:
        await asyncio.Event().wait()


async def test_all_that_is_read_while_it_connects_waits_for_one_connection() -> None:
    begun: list[Any] = []

    def primary() -> Any:
        begun.append(Primary())
        return begun[-1]

    other = OtherStore(primary, RedisKeys("holdfast", 1))
    reads = [asyncio.create_task(other.told()) for _ in range(3)]
    await asyncio.sleep(0)
    assert len(begun) == 1
    for each in reads:
        await cancel(each)
    # The next one may have to go another way.
    later = asyncio.create_task(other.told())
    await asyncio.sleep(0)
    assert len(begun) == 2
    await cancel(later)
