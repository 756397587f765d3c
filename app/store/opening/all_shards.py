"""Which server has a deployment of several shards: the one that has the first shard.

Each shard has its own lease, which silences the process of this shard alone. A server takes all
shards or none: it opens the first one when no other server raises the lease of any, and then the
others.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from holdfast.delivery.basics.ignoring import ignore
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader
from holdfast.store.opening.lease import Lease, RivalLease

log = logging.getLogger(__name__)

# How often a process looks whether another server has the first shard, and how soon again if it
# must know that before it speaks.
_LOOK_S = 1.0
_PAUSE_S = 0.1
# A store that answers later may have been replaced.
_LIMIT_S = 1.0
# Reads what happened meanwhile, and then calls its argument.
CatchUp = Callable[[Callable[[], None]], None]


class Look(NamedTuple):
    """What a process sees before it opens the store of its shard."""

    may_open: bool = True
    # Whether this server has the shard.
    is_own: bool = False
    # The epoch and the lease of the shard, if another server has it.
    lease: str = ""
    # The name of another server that has a shard, and whether it has raised its lease meanwhile.
    node: str = ""
    is_raised: bool = False
    # The host that opened the first shard last; empty if the deployment has no list of hosts.
    host: str = ""


class Gate:
    """Says when a process may open its shard and speak, as far as all shards are concerned."""

    def __init__(self) -> None:
        # Called with the name of another server that has the deployment now.
        self.on_lost: Callable[[str], None] = ignore

    async def look(self) -> Look:
        """Look now. Call it several times a second. Raises `StoreUnavailable`."""
        raise NotImplementedError

    def before_speaking(self, catch_up: CatchUp, _: Lease) -> CatchUp:
        """Return what a process does before it speaks again after a silence, given the rest."""
        return catch_up

    async def watch(self) -> None:
        """Find out whether another server has the deployment, as long as this process serves."""

    def close(self) -> None:
        """Close the connections."""


class ShardLease:
    """The lease of one shard, as another process sees it.

    Args:
        lock: Returns the name of the lock that the process of that shard in this server holds; ''
            before there was one, or if it cannot be read.
    """

    def __init__(
        self, reader: Reader, meta: str, lock: Callable[[], str], clock: Callable[[], float]
    ) -> None:
        self._reader = reader
        self._meta = meta
        self._lock = lock
        self._rival = RivalLease(clock)

    @property
    def may_tell(self) -> bool:
        """Whether the lock is known, by which the holder of the shard is told from others."""
        return bool(self._lock())

    async def look(self) -> Look:
        """Look who has the shard. It may be opened if its holder has been silent for long."""
        names = ("epoch", "lease", "node", "holder", "host")
        try:
            # Finding another primary takes longer, and must not be interrupted.
            async with asyncio.timeout(_LIMIT_S if self._reader.is_connected else None):
                found = await self._reader.ask("HMGET", self._meta, *names)
        except TimeoutError as error:
            raise StoreUnavailable("the store does not answer in time") from error
        epoch, lease, node, holder, host = ((each or b"").decode() for each in found)
        if not lease:
            return Look(host=host)
        if holder == self._lock():
            return Look(is_own=True)
        state = f"{epoch} {lease}"
        self._rival.saw(state)
        may_open, is_raised = self._rival.unraised == state, self._rival.is_raised
        return Look(may_open, False, state, node, is_raised, host)

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()


class AllShards(Gate):
    """Lets a process open the first shard when no other server has any shard.

    Args:
        first: The lease of the first shard.
        others: The leases of all other shards.
    """

    def __init__(self, first: ShardLease, others: Sequence[ShardLease]) -> None:
        super().__init__()
        self._first = first
        self._others = others

    async def look(self) -> Look:
        """Look at all shards, unless this server has the first one."""
        first = await self._first.look()
        if first.is_own:
            return first
        looks = [first, *await asyncio.gather(*map(_look, self._others))]
        rival = next((each for each in looks if each.node and not each.may_open), first)
        return Look(
            all(each.may_open for each in looks),
            lease=first.lease,
            node=rival.node,
            is_raised=any(each.is_raised for each in looks),
            host=first.host,
        )

    def close(self) -> None:
        """Close the connections."""
        for each in (self._first, *self._others):
            each.close()


async def _look(lease: ShardLease) -> Look:
    try:
        return await lease.look()
    except StoreUnavailable as error:
        log.debug("the lease of another shard cannot be read: %s", error)
        return Look(may_open=False)


class FirstShard(Gate):
    """Lets a process open another shard, and speak, as long as its server has the first one."""

    def __init__(self, first: ShardLease, own: ShardLease) -> None:
        super().__init__()
        self._first = first
        self._own = own
        self._tasks: set[asyncio.Task[None]] = set()

    async def look(self) -> Look:
        """Look whether this server has the first shard, and watch the lease of this shard."""
        first, own = await asyncio.gather(self._first.look(), self._own.look())
        node = first.node or own.node
        return Look(first.is_own, False, own.lease, node, first.is_raised or own.is_raised)

    def before_speaking(self, catch_up: CatchUp, lease: Lease) -> CatchUp:
        return partial(self._begin, catch_up, lease)

    def _begin(self, catch_up: CatchUp, lease: Lease, then: Callable[[], None]) -> None:
        if not lease.was_unraised:
            # No other server opens the first shard while the lease of this one is raised.
            catch_up(then)
            return
        task = asyncio.create_task(self._check(catch_up, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, catch_up: CatchUp, then: Callable[[], None]) -> None:
        """Catch up unless another server has the first shard, which must be known."""
        while True:
            is_lost = await self._is_lost()
            if is_lost is not None:
                break
            await asyncio.sleep(_PAUSE_S)
        if not is_lost:
            catch_up(then)

    async def watch(self) -> None:
        while True:
            if await self._is_lost():
                return
            await asyncio.sleep(_LOOK_S)

    async def _is_lost(self) -> bool | None:
        """Return whether another server has the first shard; None if that cannot be read."""
        try:
            first = await self._first.look()
        except StoreUnavailable as error:
            log.debug("the lease of the first shard cannot be read: %s", error)
            return None
        if first.node and not self._first.may_tell:
            log.warning("the lock of this server's first shard cannot be read")
            return None
        if first.node:
            self.on_lost(first.node)
        return bool(first.node)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._first.close()
        self._own.close()
