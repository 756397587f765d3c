"""Makes what lets a server take all shards of a deployment on an external store, or none."""

from functools import partial

from holdfast.compose.data_directory import lock_name_in
from holdfast.compose.placement import Placement
from holdfast.compose.shard_origin import store_of
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.url import Kind, StoreUrl
from holdfast.store.opening.all_shards import AllShards, FirstShard, Gate, ShardLease
from holdfast.store.opening.lease import boot_clock


def gate_of(settings: Settings, placement: Placement) -> Gate:
    """Return the gate of this shard's process."""

    primaries: dict[StoreUrl, Primary] = {}

    def primary(shard: int, meta: str) -> Primary:
        url = StoreUrl.of(store_of(shard, placement, settings))
        if url.kind is Kind.CLUSTER:
            # Each shard may be at another server.
            return Primary(url, meta)
        # When one reader finds the store elsewhere, the others leave the former server at once.
        return primaries.setdefault(url, Primary(url, meta))

    def lease(shard: int) -> ShardLease:
        meta = RedisKeys(settings.namespace, shard).meta
        lock = partial(lock_name_in, placement.data_of(shard))
        return ShardLease(Reader(primary(shard, meta)), meta, lock, boot_clock())

    if placement.number:
        return FirstShard(lease(0), lease(placement.number))
    return AllShards(lease(0), [lease(shard) for shard in placement.others])
