"""Lets a shard of several hosts begin again whose store has come back empty."""

from contextlib import ExitStack

from holdfast.cluster.shards import first_map
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.homes import homes_for
from holdfast.settings import Settings
from holdfast.store.format.keys import FIRST_GENERATION, RedisKeys
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.url import StoreUrl

# What the stores of all shards have in common. With it, and without an epoch, a store is one of the
# deployment that no process has opened yet.
_COMMON = ("version", "deployment", "key", "seed", "generation")


async def renew(settings: Settings, shard: int) -> None:
    """Prepare an empty store, so that hosts open it again. Raises `CannotStart`.

    A process that lives and knows what the shard had may open it meanwhile: that harms nothing.
    """
    if not settings.hosts or settings.redis is None:
        raise CannotStart("hosts: this is for deployments of several hosts alone")
    count = settings.shards or 0
    if shard >= count:
        raise CannotStart(f"the deployment has no shard {shard}: they are 0 to {count - 1}")
    url = StoreUrl.of(settings.redis)
    with ExitStack() as stack:
        stores = {}
        for each in range(count):
            meta = RedisKeys(settings.namespace, each).meta
            stores[meta] = Reader(Primary(url, meta))
            stack.callback(stores[meta].close)
        found = {meta: await store.ask("HMGET", meta, *_COMMON) for meta, store in stores.items()}
        own = RedisKeys(settings.namespace, shard).meta
        if await stores[own].ask("HEXISTS", own, "epoch"):
            raise CannotStart(f"the store of shard {shard} is not empty: hosts open it as it is")
        others = (each for meta, each in found.items() if meta != own)
        common = next((each for each in others if None not in each), None)
        if common is None:
            raise CannotStart("no other shard has a store: hosts open all of them as new ones")
        fields = dict(zip(_COMMON, common, strict=True))
        if shard == 0:
            fields |= _division(settings, count, int(fields["generation"]))
        await stores[own].ask("HSET", own, *(word for each in fields.items() for word in each))


def _division(settings: Settings, count: int, generation: int) -> dict[str, bytes]:
    """Return what the store of the first shard alone has, as it was at first."""
    if generation != FIRST_GENERATION:
        raise CannotStart(
            "the deployment was divided again since its start, and only the store of shard 0 says "
            "how: restore that store from a backup"
        )
    homes = homes_for(settings.channels)
    return {"shards": first_map(count).to_json(), "homes": homes.to_json()}
