"""Makes a server one of several shards: it reads the stores of all others, which read its own."""

import asyncio
from collections.abc import Callable, Mapping

from holdfast.bayeux.server import Bayeux
from holdfast.cluster.inclusion import Inclusion
from holdfast.cluster.shards import ShardMap, Shards, homes_of
from holdfast.compose.counting import Counting
from holdfast.compose.forwarding import Forwarding
from holdfast.compose.placement import Placement
from holdfast.compose.shard_origin import store_of
from holdfast.compose.storage import Storage
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.ports.neighbours import Neighbours
from holdfast.settings import Settings
from holdfast.sharding.facts_by_link import FactsByLink
from holdfast.sharding.following import Following
from holdfast.sharding.member import Member
from holdfast.sharding.other_shards import OtherShards
from holdfast.sharding.pace import Pace
from holdfast.store.format.keys import RedisKeys
from holdfast.store.framing.other_shard import OtherStore
from holdfast.store.framing.shard_log import ShardLog
from holdfast.store.links.primary import Primary
from holdfast.store.links.url import StoreUrl
from holdfast.store.opening.lease import boot_clock
from holdfast.web.scheduling.speaking import ShardRight
from holdfast.web.tasks import cancel


class ShardParts:
    """What this shard has of the others before its core is there.

    Args:
        came_early: Notes in the journal, by cause, messages that did not wait for stored ones.
        reaches: Returns whether another shard is there, or away for no longer than a restart takes.
    """

    def __init__(
        self,
        placement: Placement,
        shards: ShardMap,
        storage: Storage,
        *,
        stamp: Callable[[], int],
        came_early: Callable[[str, int], None],
        bucket_of: Callable[[str], int],
        core_clock: Callable[[], float],
        reaches: Callable[[int], bool],
    ) -> None:
        loop, clock = asyncio.get_running_loop(), boot_clock()
        self.right, self.log = storage.right, _log_of(storage)
        self.shards = Shards(shards, homes_of(storage.origin.division.homes), bucket_of)
        # What ends the turns of this shard, once its core is there.
        self.end_turn: Callable[[], None] = ignore
        self.others = OtherShards(
            *(placement.number, self.shards, self.log),
            stamp=stamp,
            came_early=came_early,
            clock=loop.time,
            core_clock=core_clock,
            steady=clock,
            may_speak=self._may_speak,
            wake=Pace(loop, lambda: self.end_turn()).wake,
            reaches=reaches,
        )
        # None if the lease of the store shows that this process lives.
        self.inclusion: Inclusion | None = None
        self.counting: Counting | None = None
        if isinstance(storage.right, ShardRight):
            known, numbers = self.others.known, self.others.numbers
            self.inclusion = Inclusion(numbers, known.rows, clock, known.wanted.add)
            self.counting = Counting(
                self.log, storage.primary, self.inclusion, clock, storage.lost_keeper
            )

    @property
    def neighbours(self) -> Neighbours:
        """The others as the core sees them."""
        return Neighbours(self.others.number, self.others.homes, self.others)

    def _may_speak(self) -> bool:
        """Return whether no other process has this shard, once what it knows is up to date."""
        if self.inclusion is not None:
            self.inclusion.check()
        return self.right.may_speak()


class Sharding:
    """This shard among the others, and what follows them."""

    def __init__(
        self,
        parts: ShardParts,
        placement: Placement,
        settings: Settings,
        *,
        bayeux: Bayeux,
        storage: Storage,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._storage, self._log = storage, parts.log
        self.member = Member(parts.others, bayeux)
        self._counting = parts.counting
        stores = {shard: _other(shard, placement, settings) for shard in parts.others.numbers}
        self._facts = FactsByLink(parts.others, parts.inclusion, loop.time)
        self.following = Following(self.member, stores, self._facts, loop.time)
        self._task: asyncio.Task[None] | None = None
        # What waits for logs that could not be read at the start; None before and after.
        self._waiting: asyncio.Task[None] | None = None
        parts.end_turn = self._end_turn

    def _end_turn(self) -> None:
        self.member.end_turn()
        self.following.hurry()

    async def begin(self) -> None:
        """Read what the store says about logs, before sessions are restored."""
        self.member.begin(await self._log.read(), self._storage.shown)
        self._log.owner = self.member

    @property
    def shown(self) -> Mapping[int, str]:
        """Up to where sessions that need no store have got everything in the logs of others."""
        return self.member.shown.left(self.member.readers)

    async def serve(self) -> None:
        """Take part, once all shards are there and this process is sure to go on."""
        if self._counting is not None:
            self._counting.begin()
        await self.following.read_facts()
        self._storage.before_speaking(self._catch_up)
        self.resume()
        await self.following.caught_up()
        if self.following.late():
            self._waiting = asyncio.create_task(self.following.all_taken())

    @property
    def complaint(self) -> str | None:
        """Return what this process has not taken yet since its start, or None."""
        if self._waiting is None or self._waiting.done():
            return None
        logs = [
            f"the log of shard {shard} is not taken yet"
            + (", because its store is away" if self.following.is_away(shard) else "")
            for shard in self.following.late()
        ]
        return f"starting: {'; '.join(logs)}" if logs else None

    def _catch_up(self, then: Callable[[], None]) -> None:
        if self._counting is not None:
            self._counting.hurry()
        self.following.catch_up(then)

    def join(self, forwarding: Forwarding) -> None:
        """Let messages that are not stored, and questions, go over the links to the others."""
        forwarding.inlet = self.member.inlet
        forwarding.facts, self._facts.outlets = self._facts, forwarding.facts_out
        for each in forwarding.facts_out.values():
            each.port = self._facts
        self.member.others.own.passing.passages = forwarding.passages

    def resume(self) -> None:
        """Write to the log, and follow the others."""
        if self._counting is not None:
            self._counting.begin()
        if self._task is None:
            self.member.serve()
            self._task = asyncio.create_task(self.following.run())

    async def close(self) -> None:
        """End everything."""
        if self._waiting is not None:
            await cancel(self._waiting)
        await self.pause()

    async def pause(self) -> None:
        """Follow the others no longer: another process is about to go on from the same places."""
        if self._task is not None:
            await cancel(self._task)
            self._task = None
            await self.following.rest()
            self.member.end_turn()
            self.member.pause()
        if self._counting is not None:
            await self._counting.end()


def _other(shard: int, placement: Placement, settings: Settings) -> OtherStore:
    keys = RedisKeys(settings.namespace, shard)

    return OtherStore(
        lambda: Primary(StoreUrl.of(store_of(shard, placement, settings)), keys.meta), keys
    )


def _log_of(storage: Storage) -> ShardLog:
    log = storage.store.shard_log
    if log is None:
        raise RuntimeError("a store of several shards has a log")
    return log
