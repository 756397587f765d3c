"""Offers the store of a process, which is silent and writes no more, to another host."""

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.store.format.scripts import OFFER
from holdfast.store.links.reader import Reader

if TYPE_CHECKING:
    from holdfast.store.format.keys import RedisKeys
    from holdfast.store.links.primary import Primary

# For how long the other host may take, and how often it is looked whether it has.
_LASTS_S: Final = 5.0
_LOOK_S: Final = 0.05


async def is_taken(primary: "Primary", keys: "RedisKeys", epoch: str, host: str) -> bool:
    """Offer the store for some seconds. Returns whether another process has opened it meanwhile.

    If not, the offer is withdrawn. Raises `StoreUnavailable` if that is unknown.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + _LASTS_S
    reader = Reader(primary)
    try:
        found = await reader.run(OFFER, [keys.meta], [epoch, host])
        while found == epoch.encode() and loop.time() < ends_at:
            await asyncio.sleep(_LOOK_S)
            found = await reader.ask("HGET", keys.meta, "epoch")
        found = await reader.run(OFFER, [keys.meta], [epoch, ""])
        # A store that was emptied has no epoch: this process alone knows what was lost.
        return found not in (epoch.encode(), b"")
    finally:
        reader.close()
