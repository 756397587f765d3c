"""Which generation of keys a store has; see `RedisKeys`."""

from typing import cast

from holdfast.store.format.deployment import Division
from holdfast.store.format.keys import FIRST_GENERATION, NO_GENERATION, RedisKeys
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.link import StoreLink


async def division_in(link: StoreLink, keys: RedisKeys) -> Division | None:
    """Return the division that the store of the first shard has; None for an empty store."""
    reply = await link.ask("HMGET", keys.meta, "version", "shards", "homes")
    version, shards, homes = cast("list[bytes | None]", reply)
    return None if version is None else Division(shards or b"", homes or b"")


async def keys_of(link: StoreLink, namespace: str, shard: int = 0) -> RedisKeys:
    """Return the keys of a shard: of its current generation, or of the first in an empty one."""
    meta = RedisKeys(namespace, shard).meta
    reply = await link.ask("HMGET", meta, "version", "generation")
    version, generation = cast("list[bytes | None]", reply)
    if generation is not None:
        if not generation.isdigit():
            raise StoreUnavailable("the store has a generation that is no number")
        return RedisKeys(namespace, shard, generation=int(generation))
    # A release without generations wrote it.
    is_old = version is not None
    return RedisKeys(namespace, shard, generation=NO_GENERATION if is_old else FIRST_GENERATION)
