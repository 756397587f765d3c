"""Shows operators all hosts, whichever of them they ask, and passes on what they want of one."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson

from holdfast.compose.claim_store import ClaimStore
from holdfast.hosts.overview import LOOK_S, Overview
from holdfast.settings.host_list import HostList
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.opening.lease import boot_clock

if TYPE_CHECKING:
    from holdfast.settings import Settings
    from holdfast.web.admin.host_views import HostNow, Hosts


class HostOverview:
    """What `HostResource` asks about hosts."""

    def __init__(self, settings: "Settings", store: ClaimStore, shards: int) -> None:
        self._store, self._shards = store, shards
        self._capacity = settings.capacity
        self.names = HostList.parse(settings.hosts).names

    async def read(self) -> "Hosts":
        """Look until it is sure which hosts live. Raises `StoreUnavailable`."""
        from holdfast.web.admin.host_views import Hosts, ShardMove

        overview = Overview(
            self.names, shards=self._shards, capacity=self._capacity, clock=boot_clock()
        )
        while not overview.is_over:
            overview.see(*await self._store.read(), self._store.recorded)
            await asyncio.sleep(LOOK_S)
        if overview.rows is None:
            raise StoreUnavailable("the store of shard 0, which says what hosts there are, is away")
        wishes = await self._store.wishes(self.names)
        return Hosts(
            items=[
                _host(name, overview, wish) for name, wish in zip(self.names, wishes, strict=True)
            ],
            unowned=overview.unowned,
            emptied=overview.emptied,
            moves=[ShardMove(*each) for each in overview.moves()],
        )

    async def is_drained(self, host: str) -> bool:
        """Return whether operators want a host to have no shard; not if that is unknown."""
        with suppress(StoreUnavailable):
            return (await self._store.wishes([host]))[0] is not None
        return False

    async def drain(self, host: str, who: str, now_ms: int) -> None:
        """Let a host give its shards away. Raises `StoreUnavailable`."""
        await self._store.wish_drained(host, orjson.dumps({"who": who, "since": now_ms}))

    async def uncordon(self, host: str) -> None:
        """Let a host have shards again. Raises `StoreUnavailable`."""
        await self._store.end_wish(host)


def _host(name: str, overview: Overview, wish: bytes | None) -> "HostNow":
    from holdfast.web.admin.host_views import HostNow, HostWish

    row = (overview.rows or {}).get(name)
    is_living = name in overview.living
    return HostNow(
        name=name,
        state=row.state.value if row is not None and is_living else "away",
        shards=sorted(shard for shard, owner in overview.owners.items() if owner == name),
        release=row.release if row is not None else None,
        url=row.url if row is not None else None,
        digest=(row.digest or None) if row is not None else None,
        refused=overview.refused(name),
        drain=None if wish is None else HostWish(**orjson.loads(wish)),
    )
