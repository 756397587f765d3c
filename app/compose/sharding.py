"""Makes a server one of several shards: it reads the stores of all others, which read its own."""

import asyncio
from collections.abc import Callable

from holdfast.bayeux.server import Bayeux
from holdfast.cluster.shards import ShardMap, Shards, homes_of
from holdfast.compose.forwarding import Forwarding
from holdfast.compose.placement import Placement
from holdfast.compose.shard_origin import store_of
from holdfast.compose.storage import Storage
from holdfast.settings import Settings
from holdfast.sharding.following import Following
from holdfast.sharding.member import Member
from holdfast.sharding.pace import Pace
from holdfast.store.keys import RedisKeys
from holdfast.store.lease import boot_clock
from holdfast.store.other_shard import OtherStore
from holdfast.store.primary import Primary
from holdfast.store.shard_log import ShardLog
from holdfast.store.url import StoreUrl
from holdfast.web.tasks import cancel


class Sharding:
    """This shard among the others, and what follows them."""

    def __init__(
        self,
        placement: Placement,
        shards: ShardMap,
        settings: Settings,
        *,
        bayeux: Bayeux,
        storage: Storage,
        core_clock: Callable[[], float],
        reaches: Callable[[int], bool],
    ) -> None:
        loop = asyncio.get_running_loop()
        self._storage = storage
        bucket_of = bayeux.state.client_ids.bucket_of
        self.member = Member(
            placement.number,
            Shards(shards, homes_of(storage.origin.division.homes), bucket_of),
            bayeux=bayeux,
            store=self._log,
            clock=loop.time,
            core_clock=core_clock,
            steady=boot_clock(),
            may_speak=storage.right.may_speak,
            wake=Pace(loop, self._end_turn).wake,
            reaches=reaches,
        )
        stores = {shard: _other(shard, placement, settings) for shard in self.member.others}
        self.following = Following(self.member, stores, loop.time)
        self._task: asyncio.Task[None] | None = None

    @property
    def _log(self) -> ShardLog:
        log = self._storage.store.shard_log
        if log is None:
            raise RuntimeError("a store of several shards has a log")
        return log

    def _end_turn(self) -> None:
        self.member.end_turn()
        self.following.hurry()

    async def begin(self) -> None:
        """Read what the store says about logs, before sessions are restored."""
        log = self._log
        self.member.begin(await log.read(), goes_on=self._storage.goes_on)
        log.owner = self.member

    async def serve(self) -> None:
        """Take part, once all shards are there and this process is sure to go on."""
        await self.following.read_facts()
        self._storage.before_speaking(self.following.catch_up)
        self.resume()
        await self.following.caught_up()

    def join(self, forwarding: Forwarding) -> None:
        """Let messages that are not stored go over the links to the others."""
        forwarding.inlet = self.member.inlet
        self.member.own.passing.passages = forwarding.passages

    def resume(self) -> None:
        """Write to the log, and follow the others."""
        if self._task is None:
            self.member.serve()
            self._task = asyncio.create_task(self.following.run())

    async def pause(self) -> None:
        """Follow the others no longer: another process is about to go on from the same places."""
        if self._task is not None:
            await cancel(self._task)
            self._task = None
            await self.following.rest()
            self.member.end_turn()
            self.member.pause()


def _other(shard: int, placement: Placement, settings: Settings) -> OtherStore:
    keys = RedisKeys(settings.namespace, shard)

    return OtherStore(
        lambda: Primary(StoreUrl.of(store_of(shard, placement, settings)), keys.meta), keys
    )
