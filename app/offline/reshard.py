"""Divides a deployment otherwise, while no server runs: among more or fewer shards.

The new generation is written beside the current one, in the stores of all shards that it will have.
One step in the store of the first shard makes it the current one. If the process is killed before
that step, nothing has changed for servers; if it is killed later, only leftovers stay. Either way,
the next run goes on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from holdfast.cluster.shards import Homes, MapUnreadable
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.homes import homes_for
from holdfast.compose.shard_origin import origin_in
from holdfast.compose.workers import mark_unused, mark_used
from holdfast.delivery.basics.ignoring import ignore
from holdfast.offline.division import Divided, Places, divided
from holdfast.offline.moving import MESSAGES, Moving, size_of
from holdfast.offline.moving_letters import LETTERS, clock_of, replays_of
from holdfast.offline.moving_requests import REQUESTS
from holdfast.offline.shard_side import Side
from holdfast.offline.tenure import Tenure
from holdfast.offline.undrained import Untaken, untaken_in
from holdfast.settings import Settings
from holdfast.store.format.deployment import Origin
from holdfast.store.format.keys import NO_GENERATION, RedisKeys
from holdfast.store.format.layouts import LAYOUT
from holdfast.store.links.reader import Reader
from holdfast.store.opening.dividing import (
    Prepared,
    enter_first,
    follow,
    generation_of,
    prepare,
    unprepare,
)
from holdfast.store.replays.job_records import unpack_job

STEPS: Final = (*MESSAGES, *REQUESTS, *LETTERS)
_SCANNED: Final = 1000
# The field of the first shard's meta with the number of shards that have keys of a next generation.
_WRITTEN: Final = "written"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is wanted."""

    # None for the number of shards that there are.
    shards: int | None
    # Whether channels get the homes that the rules of the settings need.
    rules: bool = False
    is_dry: bool = False


@dataclass(slots=True)
class Progress:
    """Hears how far the work is."""

    begin: Callable[[str, int], None] = ignore
    advance: Callable[[int], None] = ignore
    say: Callable[[str], None] = ignore


@dataclass(slots=True)
class Report:
    """What was done, or would be."""

    before: int
    after: int
    is_dry: bool
    # Whether anything had to be moved.
    has_moved: bool = False
    # By shard.
    sessions: dict[int, int] = field(default_factory=dict)
    entries: dict[int, int] = field(default_factory=dict)
    letters: dict[int, int] = field(default_factory=dict)
    messages: int = 0
    # What the stores have now in bytes, and about how much more they need until the end.
    memory: int = 0
    needed: int = 0
    # What would have to be taken first.
    untaken: list[str] = field(default_factory=list)
    # Keys of other generations that were removed.
    removed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as an object."""
        shards = range(max(self.before, self.after))
        return {
            "before": self.before,
            "after": self.after,
            "dry_run": self.is_dry,
            "moved": self.has_moved,
            "messages": self.messages,
            "memory": self.memory,
            "needed": self.needed,
            "untaken": self.untaken,
            "shards": [
                {
                    "shard": shard,
                    "sessions": self.sessions.get(shard, 0),
                    "entries": self.entries.get(shard, 0),
                    "letters": self.letters.get(shard, 0),
                }
                for shard in shards
            ]
            if self.has_moved
            else [],
        }


class NotTaken(CannotStart):
    """Shards still have something for each other."""

    def __init__(self, untaken: Sequence[Untaken], count: int) -> None:
        super().__init__(
            f"{untaken[0]}: start the server with its former settings, keep clients away until its "
            "shards have taken everything, and stop it"
        )
        self.untaken = untaken
        # How many shards there are.
        self.count = count


class _Found(NamedTuple):
    """What the first store says."""

    generation: int
    divided: Divided
    # What the stores of all shards have in common.
    origin: Origin
    # In how many shards a run has written that did not come to its end; 0 if all did.
    written: int


async def reshard(
    tenure: Tenure,
    settings: Settings,
    plan: Plan,
    told: Progress | None = None,
    *,
    homes: Homes | None = None,
) -> Report:
    """Divide the deployment as planned. Raises `CannotStart` or `StoreUnavailable`.

    Args:
        homes: Those that the rules need; by default, the rules of the settings.
    """
    wanted = homes_for(settings.channels) if homes is None else homes
    return await Resharding(tenure, settings, plan, told or Progress(), wanted).run()


class Resharding:
    """One run."""

    def __init__(
        self, tenure: Tenure, settings: Settings, plan: Plan, told: Progress, homes: Homes
    ) -> None:
        self._tenure = tenure
        self._settings = settings
        self._plan = plan
        self._told = told
        self._homes = homes
        # The shards below this number may have leftovers.
        self._most = 0

    async def run(self) -> Report:
        found = await self._look(await self._tenure.store(0))
        target = self._target(found)
        report = Report(found.divided.count, target.count, self._plan.is_dry)
        report.has_moved = target != found.divided
        sources = [await self._side(shard, found.generation) for shard in range(report.before)]
        report.memory = await self._memory(sources)
        if report.has_moved:
            report.untaken = [str(each) for each in await self._check(sources, found.generation)]
        if not self._plan.is_dry:
            await self._begin(found, sources, report)
        if report.has_moved:
            await self._move(found, sources, target, report)
            if not self._plan.is_dry:
                await self._enter(found, sources, target, report)
        if not self._plan.is_dry:
            await self._end(sources[0], target.count)
        return report

    def _keys(self, shard: int, generation: int) -> RedisKeys:
        return RedisKeys(self._settings.namespace, shard, generation)

    async def _side(self, shard: int, generation: int) -> Side:
        store, keys = await self._tenure.store(shard), self._keys(shard, generation)
        return Side(shard, store, keys, self._tenure.epoch)

    # What there is, and what is wanted

    async def _look(self, store: Reader) -> _Found:
        meta = self._keys(0, NO_GENERATION).meta
        version, written = await store.ask("HMGET", meta, "version", _WRITTEN)
        origin = await origin_in(store, meta)
        if version is None or origin is None:
            raise CannotStart(
                "the store is empty: start the server with as many workers as you want"
            )
        if int(version) != LAYOUT:
            raise CannotStart(
                f"the store has layout {int(version)}, and releases that know no shards could "
                "open it: start the server, and run holdfast upgrade --finish"
                if int(version) < LAYOUT
                else f"a later release wrote the store (layout {int(version)})"
            )
        try:
            found = divided(origin.division)
        except MapUnreadable as error:
            raise CannotStart(f"the store of shard 0 cannot be used: {error}") from error
        # The stores refuse another name.
        wanted = self._settings.deployment or origin.deployment.name
        origin = replace(origin, deployment=replace(origin.deployment, name=wanted))
        return _Found(origin.generation or NO_GENERATION, found, origin, int(written or 0))

    def _target(self, found: _Found) -> Divided:
        now = found.divided
        count = self._plan.shards or now.count
        if count == 1:
            return Divided(now.map.for_shards(1), Homes({}))
        takes_rules = self._plan.rules or now.count == 1
        homes = self._homes if takes_rules else now.homes
        return Divided(now.map.for_shards(count), homes)

    async def _check(self, sources: Sequence[Side], generation: int) -> Sequence[Untaken]:
        """Refuse what would be lost. Returns what has to be taken first, in a dry run."""
        for source in sources:
            for job in await replays_of(source):
                fields = await source.whole(source.keys.replay(job))
                if unpack_job(fields).is_under_way:
                    raise CannotStart(
                        f"the replay {job} is under way: start the server, and let it end, or "
                        f"cancel it with holdfast dead replay --cancel {job}"
                    )
        followed = [each for each in sources if await _generation(each) == generation]
        untaken = await untaken_in(followed)
        if untaken and not self._plan.is_dry:
            raise NotTaken(untaken, len(sources))
        return untaken

    async def _memory(self, sources: Sequence[Side]) -> int:
        """Return what the stores have in memory."""
        embedded = sources if self._tenure.is_embedded else sources[:1]
        found = [await each.store.ask("INFO", "memory") for each in embedded]
        return sum(int(info.partition(b"used_memory:")[2].split(b"\r")[0]) for info in found)

    # Steps that write

    async def _begin(self, found: _Found, sources: Sequence[Side], report: Report) -> None:
        """Finish what a killed run has left, and remove what it has not finished."""
        behind: list[Side] = []
        for source in sources:
            own = await _generation(source)
            await self._tenure.fence(source.keys.in_generation(own), source.shard, found.origin)
            if own != found.generation:
                behind.append(source)
        self._most = max(report.before, report.after, found.written)
        if self._tenure.is_embedded:
            mark_unused(self._settings.data, range(report.before, self._most))
        first = sources[0]
        # The next run knows by this where leftovers may be.
        await first.change(("HSET", first.keys.meta, _WRITTEN, self._most))
        await self._tenure.confirm(first)
        for source in behind:
            await follow(source.store.ask, source.keys, self._tenure.epoch(source.shard))
        await self._remove_all_but(found.generation, report.before, report)

    async def _remove_all_but(self, current: int, count: int, report: Report) -> None:
        """Remove what is not of this generation, nor of its shards."""
        for shard in range(self._most):
            side = await self._side(shard, current)
            report.removed += await self._remove(side, current if shard < count else None)

    async def _remove(self, side: Side, current: int | None) -> int:
        """Remove the keys of a shard in all generations but one."""
        await side.change(unprepare(side.keys))
        cursor, removed = 0, 0
        while True:
            pattern = f"{side.keys.tag}*"
            reply, names = await side.store.ask("SCAN", cursor, "MATCH", pattern, "COUNT", _SCANNED)
            old = [
                name
                for name in names
                if generation_of(side.keys, name.decode()) not in (None, current)
            ]
            if old:
                removed += sum(await side.change(("UNLINK", *old)))
            cursor = int(reply)
            if not cursor:
                return removed

    async def _move(
        self, found: _Found, sources: Sequence[Side], target: Divided, report: Report
    ) -> None:
        """Write the next generation."""
        targets = [
            Side(shard, sources[0].store, self._keys(shard, found.generation + 1))
            if self._plan.is_dry
            else await self._side(shard, found.generation + 1)
            for shard in range(target.count)
        ]
        moving = Moving(
            sources,
            targets,
            Places(target, found.origin.deployment.key),
            most_keys=self._settings.max_publish_keys,
            advance=lambda count: self._told.advance(count),
            is_dry=self._plan.is_dry,
        )
        self._told.begin("Counting" if self._plan.is_dry else "Moving", await size_of(sources))
        for step in STEPS:
            await step.run(moving)
        await moving.flush()
        report.sessions, report.letters = dict(moving.sessions), dict(moving.letters)
        report.entries, report.messages = dict(moving.entries), moving.messages
        # A message with receivers in several shards is written for each.
        report.needed = int(report.memory * max(1, moving.copies / max(1, moving.messages)))
        if not self._plan.is_dry:
            for side in targets:
                await _verify(side, report)

    async def _enter(
        self, found: _Found, sources: Sequence[Side], target: Divided, report: Report
    ) -> None:
        """Make the next generation the current one, and remove the former."""
        generation = found.generation + 1
        targets = [await self._side(shard, generation) for shard in range(target.count)]
        prepared = Prepared(
            generation,
            clock=max([await clock_of(source) for source in sources]),
            stamped=max([await _newest(source) for source in sources]),
        )
        for side in targets:
            if self._tenure.is_embedded:
                # With this write, all before it are on the disk.
                await side.store.ask("CONFIG", "SET", "appendfsync", "always")
            await side.change(prepare(side.keys, prepared))
            await self._tenure.confirm(side)
        first, *others = targets
        await enter_first(first.store.ask, first.keys, target.record, self._tenure.epoch(0))
        # A failover that took it back would find others without the former generation.
        await self._tenure.confirm(first)
        for side in others:
            await follow(side.store.ask, side.keys, self._tenure.epoch(side.shard))
        await self._remove_all_but(generation, report.after, report)

    async def _end(self, first: Side, count: int) -> None:
        """Let the directories show how many shards there are: there are no leftovers."""
        if self._tenure.is_embedded:
            mark_used(self._settings.data, range(1, count))
            mark_unused(self._settings.data, range(count, self._most))
        await first.change(("HDEL", first.keys.meta, _WRITTEN))


async def _generation(side: Side) -> int:
    """Return the generation in which a shard is, which may not have followed the first one."""
    found = await side.store.ask("HGET", side.keys.meta, "generation")
    return int(found or NO_GENERATION)


async def _newest(side: Side) -> int:
    found = await side.store.ask("HMGET", side.keys.meta, "newest", "stamped")
    return max(int(each or 0) for each in found)


async def _verify(side: Side, report: Report) -> None:
    """Compare what the store has with what it should have got, before it counts."""
    sessions = await side.store.ask("HLEN", side.keys.sessions)
    if sessions != report.sessions.get(side.shard, 0):
        raise RuntimeError(f"shard {side.shard} has {sessions} sessions: {report.sessions}")
