"""Follows the other shards of a deployment: reads what they have for this one, in their stores."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from holdfast.cluster.places import Place, place_of
from holdfast.cluster.waiting import Fields
from holdfast.sharding.facts_by_link import FactsByLink
from holdfast.sharding.member import Member
from holdfast.store.framing import frame_reads
from holdfast.store.framing.other_shard import OtherStore
from holdfast.store.links.connection import StoreUnavailable

log = logging.getLogger(__name__)

# How long a read waits for a frame: so long, nothing else is read in that store. Longer if no
# shard waits for anything.
_AWAITED_WAIT_MS: Final = 50
_WAIT_MS: Final = 500
_SHORTEST_WAIT_MS: Final = 1
# How long to wait when nothing can be read now, or after a failure.
_BUSY_S: Final = 0.01
_SHORTEST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
# How often the member's time advances: while others may wait for that, and else.
_AWAITED_TICK_S: Final = 0.025
_TICK_S: Final = 0.2
# How long a start waits for the facts and the log of a shard whose store is away, and how long a
# process that leaves waits for its own store.
_PATIENCE_S: Final = 2.0
_RESTING_S: Final = 0.5
# How long a process that has started calls itself not ready because of such a log.
_LATE_S: Final = 10.0
# How long this shard tries to show others that it lives, before it reads their facts.
_SHOWING_S: Final = 1.0


class Following:
    """Reads the stores of all other shards for a member. None of them delays another one.

    Args:
        stores: By number, the stores of the others.
        facts: What others ask and are asked over links.
        clock: Returns the time of the event loop.
    """

    def __init__(
        self,
        member: Member,
        stores: Mapping[int, OtherStore],
        facts: FactsByLink,
        clock: Callable[[], float],
    ) -> None:
        self._member = member
        self._stores = stores
        self._facts = facts
        self._clock = clock
        # By shard, the end of its log when its facts were read.
        self._ends: dict[int, Place] = {}
        # The shards whose logs were not taken yet as far as they were at the start.
        self._late = [*stores]
        # What looks at the holders of shards, and the shards whose stores are away.
        self._looks: set[asyncio.Task[None]] = set()
        self._away: set[int] = set()
        # What catches up, with what follows, and what follows once those go on that were ended.
        self._catching_up: dict[asyncio.Task[None], Callable[[], None]] = {}
        self._interrupted: list[Callable[[], None]] = []
        # When the member's time advances next, and whether that is soon.
        self._ticking: asyncio.TimerHandle | None = None
        self._is_hurrying = False

    async def read_facts(self) -> None:
        """Read the facts of all shards, as far as their stores answer in time.

        In the others, every channel counts as one with durable receivers.
        """
        await _while(lambda: not self._facts.are_waited_for, _SHOWING_S)
        known = self._member.others.known
        known.want_all()
        try:
            async with asyncio.timeout(_PATIENCE_S), asyncio.TaskGroup() as group:
                for shard in self._stores:
                    group.create_task(self._read_facts(shard))
        except TimeoutError:
            unread = sorted(known.wanted)
            for shard in unread:
                known.lose(shard)
            log.warning("the facts of shards %s could not be read", ", ".join(map(str, unread)))

    async def _read_facts(self, shard: int) -> None:
        while shard in self._member.others.known.wanted:
            try:
                await self._learn_all(shard)
            except StoreUnavailable as error:
                log.debug("the store of shard %d cannot be read: %s", shard, error)
                await asyncio.sleep(_SHORTEST_PAUSE_S)

    async def _learn_all(self, shard: int) -> None:
        began_at = self._member.others.homes.contacts.clock()
        readers = self._member.readers
        # It may be read on meanwhile.
        place = readers[shard].place if shard in readers else None
        found = await self._stores[shard].told()
        self._member.learn_all(shard, found)
        self._ends[shard] = end = place_of(found.end)
        self._member.others.lost_ends.saw(shard, end, place or readers[shard].place)
        self._facts.has_read(shard, self._ends[shard], began_at)

    def catch_up(self, then: Callable[[], None]) -> None:
        """Read the facts of all again, because they may have gone on without this shard.

        Their logs are read as well, as far as they are now. If `run` ends first, the next one
        begins with this.
        """
        task = asyncio.create_task(self._catch_up())
        self._catching_up[task] = then
        task.add_done_callback(self._caught_up)

    def _caught_up(self, task: asyncio.Task[None]) -> None:
        then = self._catching_up.pop(task)
        if task.cancelled():
            self._interrupted.append(then)
        else:
            then()

    async def _catch_up(self) -> None:
        await self.read_facts()
        await _while(lambda: not all(map(self._has_read_on, self._ends)))

    def _has_read_on(self, shard: int) -> bool:
        """Return whether the log is read as far as it was when the facts were read."""
        place, end = self._member.readers[shard].place, self._ends[shard]
        return place.fence > end.fence or (place.nonce == end.nonce and place.n >= end.n)

    async def caught_up(self) -> None:
        """Wait a limited time until all logs are taken as far as they were at the start."""
        await _while(lambda: not self._member.has_caught_up)

    async def all_taken(self) -> None:
        """Wait for logs that could not be read at the start, too, with a limit.

        A log whose store is away for longer is followed when it is back.
        """
        await _while(lambda: bool(self.late()), _LATE_S)
        for shard in self._late:
            log.warning("this process goes on without the log of shard %d for now", shard)
        self._late = []

    def late(self) -> list[int]:
        """Return the shards whose logs are waited for since the start."""
        self._late = [shard for shard in self._late if not self._is_taken(shard)]
        return self._late

    def _is_taken(self, shard: int) -> bool:
        readers = self._member.readers
        return shard in readers and readers[shard].is_behind_start

    def is_away(self, shard: int) -> bool:
        """Return whether the store of a shard cannot be read now."""
        return shard in self._away or shard not in self._ends

    async def rest(self) -> None:
        """Let the store have everything that was read, after `run`."""
        self._member.others.follow()
        for _ in range(round(_RESTING_S / _BUSY_S)):
            if self._member.has_followed:
                return
            self._member.tick()
            await asyncio.sleep(_BUSY_S)

    async def run(self) -> None:
        """Follow the others until this is cancelled."""
        interrupted, self._interrupted = self._interrupted, []
        try:
            self._tick()
            for then in interrupted:
                self.catch_up(then)
            async with asyncio.TaskGroup() as group:
                for shard in self._stores:
                    group.create_task(self._follow(shard))
        finally:
            if self._ticking is not None:
                self._ticking.cancel()
                self._ticking = None
            for task in (*self._looks, *self._catching_up):
                task.cancel()
            for store in self._stores.values():
                store.close()

    def _tick(self) -> None:
        member = self._member
        try:
            member.tick()
            self._facts.tick()
            for shard in member.others.agreements.holders_to_read(self._clock()):
                self._look_soon(shard)
        except Exception:
            log.exception("a shard among others failed to advance its time")
        self._tick_later()

    def _tick_later(self) -> None:
        self._is_hurrying = self._member.is_awaited
        pause_s = _AWAITED_TICK_S if self._is_hurrying else _TICK_S
        self._ticking = asyncio.get_running_loop().call_later(pause_s, self._tick)

    def hurry(self) -> None:
        """Let time advance soon if others may wait for that now."""
        if self._ticking is not None and not self._is_hurrying and self._member.is_awaited:
            self._ticking.cancel()
            self._tick_later()

    async def _follow(self, shard: int) -> None:
        pause_s = _SHORTEST_PAUSE_S
        while True:
            began_at = self._clock()
            try:
                await self._read(shard)
            except StoreUnavailable as error:
                self._note_away(shard, error)
                if self._clock() - began_at > _LONGEST_PAUSE_S:
                    # It was there in between.
                    pause_s = _SHORTEST_PAUSE_S
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            except Exception:
                log.exception("the log of shard %d could not be read", shard)
                await asyncio.sleep(_LONGEST_PAUSE_S)
            else:
                self._note_back(shard)
                pause_s = _SHORTEST_PAUSE_S
                # Let others run, if nothing had to wait.
                await asyncio.sleep(0)

    async def _read(self, shard: int) -> None:
        """Read what is needed most from the store of a shard."""
        member, store = self._member, self._stores[shard]
        if shard in member.others.known.wanted:
            await self._learn_all(shard)
        reader = member.readers[shard]
        if reader.is_looking:
            incarnations, link = await store.incarnations(reader.looks_at)
            reader.looked(incarnations, self._clock(), link)
        if reader.next_read(self._clock()) is None:
            await asyncio.sleep(_BUSY_S)
        else:
            next_read, heard = partial(self._next_read, shard), partial(self._heard, shard)
            await store.follow(next_read, heard)

    def _next_read(self, shard: int) -> tuple[str, int] | None:
        """Return behind which frame to read, and how long to wait; None if something is first."""
        member = self._member
        reader = member.readers[shard]
        if reader.is_looking or shard in member.others.known.wanted:
            return None
        after = reader.next_read(self._clock())
        if after is None:
            return None
        if not reader.is_ahead:
            member.others.homes.contacts.begin(shard)
        if reader.is_ahead:
            return after, _SHORTEST_WAIT_MS if reader.is_brief else _AWAITED_WAIT_MS
        return after, _AWAITED_WAIT_MS if member.is_awaited else _WAIT_MS

    def _heard(self, shard: int, after: str, frames: Sequence[tuple[bytes, Fields]]) -> None:
        self._note_back(shard)
        member = self._member
        reader = member.readers[shard]
        is_ahead = reader.is_ahead
        member.heard(shard, after, frames)
        if not is_ahead:
            last = frames[-1][0].decode() if frames else after
            # A frame that is unreadable, or does not follow, is the end of what was heard.
            is_all = len(frames) < frame_reads.MOST_FRAMES and reader.after == last
            member.others.homes.contacts.end(shard, reader.place, reader.shown, is_all=is_all)
        self.hurry()

    def _look_soon(self, shard: int) -> None:
        task = asyncio.create_task(self._look(shard))
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)

    async def _look(self, shard: int) -> None:
        """Read who has a shard, and whether that process raises its lease."""
        holder: str | None = None
        with suppress(StoreUnavailable):
            holder = await self._stores[shard].holder()
        self._member.others.agreements.read(shard, holder, self._clock())

    def _note_away(self, shard: int, error: StoreUnavailable) -> None:
        if shard not in self._away:
            self._away.add(shard)
            log.warning("the store of shard %d cannot be read: %s", shard, error)

    def _note_back(self, shard: int) -> None:
        if shard in self._away:
            self._away.discard(shard)
            log.warning("the store of shard %d can be read again", shard)


async def _while(is_so: Callable[[], bool], limit_s: float = _PATIENCE_S) -> None:
    for _ in range(round(limit_s / _BUSY_S)):
        if not is_so():
            return
        await asyncio.sleep(_BUSY_S)
