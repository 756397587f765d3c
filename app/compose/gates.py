"""Makes what lets a server take all shards of a deployment on an external store, or none."""

from functools import partial

from holdfast.compose.data_directory import lock_name_in
from holdfast.compose.placement import Placement
from holdfast.compose.shard_origin import store_of
from holdfast.settings import Settings
from holdfast.store.all_shards import AllShards, FirstShard, Gate, ShardLease
from holdfast.store.keys import RedisKeys
from holdfast.store.lease import boot_clock
from holdfast.store.primary import Primary
from holdfast.store.reader import Reader
from holdfast.store.url import StoreUrl


def gate_of(settings: Settings, placement: Placement) -> Gate:
    """Return the gate of this shard's process."""

    def lease(shard: int) -> ShardLease:
        meta = RedisKeys(settings.namespace, shard).meta
        store = Primary(StoreUrl.of(store_of(shard, placement, settings)), meta)
        lock = partial(lock_name_in, placement.data_of(shard))
        return ShardLease(Reader(store), meta, lock, boot_clock())

    if placement.number:
        return FirstShard(lease(0), lease(placement.number))
    return AllShards(lease(0), [lease(shard) for shard in placement.others])
