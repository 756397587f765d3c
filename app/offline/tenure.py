"""Keeps servers away from the stores of a deployment."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from pathlib import Path

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.data_directory import own_directory
from holdfast.compose.placement import Placement, placed
from holdfast.compose.shard_origin import store_of
from holdfast.delivery.basics.ignoring import ignore
from holdfast.offline.shard_side import Side
from holdfast.settings import Settings
from holdfast.store.format.deployment import Origin
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.publish_keys import StoreClock
from holdfast.store.format.scripts import OPEN, RAISE
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.link import StoreLink
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.url import StoreUrl
from holdfast.store.local.embedded import Durability, EmbeddedValkey
from holdfast.store.local.home import Home
from holdfast.store.opening.asking_to_open import Opening
from holdfast.store.opening.write_right import WriteRight
from holdfast.units import counted

_RAISE_S = 0.5
# How long replicas may take for what was written: less than a query may.
_CONFIRMED_MS = 4000
_REPLICAS = "replicas"


class Tenure:
    """The stores of shards, while no server has them.

    `holding` locks the data directory. Stores in another server are `fenced` before anything is
    written: servers then wait for the lease, and those that were frozen write nothing any more.
    """

    def __init__(self, settings: Settings, stack: AsyncExitStack, lock: str) -> None:
        self._settings = settings
        self._stack = stack
        self._lock = lock
        self._stores: dict[int, Reader] = {}
        # By shard, the epoch in which this process has a store of another server.
        self._epochs: dict[int, str] = {}

    @property
    def is_embedded(self) -> bool:
        """Whether each shard has a store with files in its own directory."""
        return self._settings.redis is None

    def place(self, count: int) -> Placement:
        """Return where the first of so many shards has its files."""
        return placed(self._settings, 0, count)

    async def store(self, shard: int) -> Reader:
        """Return the store of a shard; starts it if it is embedded."""
        if shard not in self._stores:
            url = await self._url_of(shard)
            key = RedisKeys(self._settings.namespace, shard).meta
            found = self._stores[shard] = Reader(Primary(StoreUrl.of(url), key))
            self._stack.callback(found.close)
        return self._stores[shard]

    async def _url_of(self, shard: int) -> str:
        return self._settings.redis or await self._start(self.place(1).data_of(shard))

    async def _start(self, data: Path) -> str:
        if data != self._settings.data:
            data.parent.mkdir(mode=0o700, exist_ok=True)
            self._stack.enter_context(own_directory(data))
        durability = Durability(self._settings.durability)
        return await self._stack.enter_async_context(EmbeddedValkey(data, durability))

    async def fence(self, keys: RedisKeys, shard: int, origin: Origin) -> None:
        """Become the only one who may write to a shard. Raises `StoreUnavailable`.

        Args:
            origin: What the shard gets if no server has opened it yet.
        """
        if self.is_embedded or shard in self._epochs:
            # The lock of the directory keeps all others away.
            return
        primary = Primary(StoreUrl.of(await self._url_of(shard)), keys.meta)
        link = StoreLink(primary, scripts=[OPEN], on_state=ignore, random=random.random)
        try:
            await link.open()
            right = WriteRight(
                link,
                keys,
                opening=Opening(
                    *(self._settings.node, origin.deployment, self._lock), seed=lambda: origin.seed
                ),
                clock=StoreClock(time.monotonic),
                on_opened=ignore,
                on_lost=ignore,
                on_again=ignore,
                on_fenced=ignore,
            )
            await right.open()
        finally:
            await link.close()
        self._epochs[shard] = right.epoch
        lease = _Lease(Reader(primary), keys.meta, right.epoch)
        self._stack.push_async_callback(lease.end)

    async def confirm(self, side: Side) -> None:
        """Wait until replicas have what was written last to a shard, if they must.

        Raises `CannotStart`.
        """
        kind, _, wanted = self._settings.durability.partition(":")
        if kind != _REPLICAS:
            return
        _, found = await side.store.ask("WAITAOF", 0, wanted, _CONFIRMED_MS)
        if found < int(wanted):
            raise CannotStart(
                f"durability {self._settings.durability}: {counted(found, 'replica')} of the store "
                f"of shard {side.shard} {'has' if found == 1 else 'have'} what was written: see "
                "that they follow, and run the command again"
            )

    def epoch(self, shard: int) -> str:
        """Return the epoch of this process in a store; empty if no other process can open it."""
        return self._epochs.get(shard, "")


class _Lease:
    """Keeps the lease of a store, and gives it up at the end."""

    def __init__(self, reader: Reader, meta: str, epoch: str) -> None:
        self._reader = reader
        self._meta = meta
        self._epoch = epoch
        self._task = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        while True:
            # If the store is away for long, what is written there fails as well.
            with suppress(StoreUnavailable):
                await self._reader.run(RAISE, [self._meta], [self._epoch])
            await asyncio.sleep(_RAISE_S)

    async def end(self) -> None:
        """Let others open the store."""
        self._task.cancel()
        await asyncio.wait([self._task])
        with suppress(StoreUnavailable):
            if await self._reader.ask("HGET", self._meta, "epoch") == self._epoch.encode():
                await self._reader.ask("HDEL", self._meta, "lease", "holder")
        self._reader.close()


@asynccontextmanager
async def holding(settings: Settings) -> AsyncIterator[Tenure]:
    """Lock the data directory of a deployment. Raises `CannotStart` if a server runs there."""
    if settings.redis is None:
        if settings.durability == Durability.MEMORY.value:
            raise CannotStart(
                "durability: a store in memory is empty when its server has stopped: there is "
                "nothing to divide"
            )
        if not Home(settings.data).files.exists():
            raise CannotStart(f"{settings.data} has no store: name the data directory with --data")
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(own_directory(settings.data))
        yield Tenure(settings, stack, directory.lock_name)


@asynccontextmanager
async def shown(settings: Settings, count: int) -> AsyncIterator[list[Side]]:
    """Yield the shards of a deployment whose server runs, to look at what they have."""
    with ExitStack() as stack:
        found = []
        for shard in range(count):
            keys = RedisKeys(settings.namespace, shard)
            url = store_of(shard, placed(settings, 0, count), settings)
            reader = Reader(Primary(StoreUrl.of(url), keys.meta))
            stack.callback(reader.close)
            found.append(Side(shard, reader, keys))
        yield found
