"""What the stores of several shards have in common. The first shard's store decides."""

import asyncio

from holdfast.cluster.shards import MapUnreadable, first_map, map_of
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.homes import check_homes, homes_for
from holdfast.compose.placement import Placement, alone
from holdfast.settings import Settings
from holdfast.store.format.deployment import Deployment, Division, Origin
from holdfast.store.format.keys import NO_GENERATION, RedisKeys
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.link import StoreLink
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.reply_errors import ScriptFailed
from holdfast.store.links.url import StoreUrl
from holdfast.store.local.home import Home
from holdfast.store.opening.asking_to_open import ShardElsewhere
from holdfast.store.opening.dividing import follow

# How long another shard waits for the first one, whose store may just start.
_LIMIT_S = 15.0
_LOOK_S = 0.05


class OtherCount(CannotStart):
    """The store was created for another number of shards."""

    def __init__(self, found: int, wanted: int) -> None:
        super().__init__(
            f"workers: this deployment has {found}, and {wanted} cannot serve it: "
            f"set workers to {found}. To change the number, sessions and messages have to be "
            f"divided again: stop the server, and run holdfast reshard --shards {wanted}"
        )
        self.found = found


def first_origin(settings: Settings, placement: Placement, found: Division | None) -> Origin:
    """Return the origin for the first shard, which needs none, if its store has the right number.

    Args:
        found: The division in the store; None in an empty store. Raises `CannotStart`.
    """
    deployment = Deployment.proposed(settings.deployment)
    if found is None:
        homes = homes_for(settings.channels)
        found = Division(first_map(placement.count).to_json(), homes.to_json())
    _check(found, settings, placement)
    placement.make_others()
    return Origin(deployment, division=found)


async def origin_of_others(
    settings: Settings, placement: Placement, link: StoreLink, keys: RedisKeys
) -> tuple[Origin, RedisKeys]:
    """Read the origin in the store of the first shard, once it is there. Raises `CannotStart`.

    Returns the keys of this shard, too: in the generation that the first one has. Raises
    `ShardElsewhere` if another server has the deployment, and this is a host.
    """
    origin = await common_origin(settings, placement)
    return origin, await _in_generation(origin, link, keys)


async def common_origin(settings: Settings, placement: Placement) -> Origin:
    """Read the origin in the store of the first shard, once it is there. Raises `CannotStart`."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _LIMIT_S
    while True:
        try:
            origin = await _read(settings, placement)
            why = "it is empty"
        except StoreUnavailable as error:
            origin, why = None, str(error)
        if origin is not None:
            break
        if loop.time() > until:
            raise CannotStart(f"the store of shard 0 cannot be read: {why}")
        await asyncio.sleep(_LOOK_S)
    if placement.host and not origin.has_hosts:
        raise ShardElsewhere("a server without hosts has the deployment")
    _check(origin.division, settings, placement)
    return origin


def store_of(shard: int, placement: Placement, settings: Settings) -> str:
    """Return the URL of a shard's store. One that was started again may have another socket."""
    return settings.redis or Home(placement.data_of(shard)).url


async def _read(settings: Settings, placement: Placement) -> Origin | None:
    meta = RedisKeys(settings.namespace).meta
    reader = Reader(Primary(StoreUrl.of(store_of(0, placement, settings)), meta))
    try:
        return await origin_in(reader, meta)
    finally:
        reader.close()


async def origin_in(store: Reader, meta: str) -> Origin | None:
    """Return the origin in the store of the first shard; None in an empty one."""
    names = ("deployment", "key", "seed", "shards", "homes", "generation", "host")
    name, key, seed, shards, homes, generation, host = await store.ask("HMGET", meta, *names)
    if name is None or key is None or seed is None:
        return None
    deployment = Deployment(name.decode(), bytes.fromhex(key.decode()))
    return Origin(
        deployment,
        seed.decode(),
        Division(shards or b"", homes or b""),
        int(generation or NO_GENERATION),
        has_hosts=host is not None,
    )


async def _in_generation(origin: Origin, link: StoreLink, keys: RedisKeys) -> RedisKeys:
    """Let this shard enter the generation of the first one, which decides.

    It has not, if the process that divided the deployment was killed before.
    """
    if origin.generation is None or origin.generation == keys.generation:
        return keys
    wanted = keys.in_generation(origin.generation)
    try:
        await follow(link.ask, wanted)
    except (StoreUnavailable, ScriptFailed) as error:
        raise CannotStart(
            f"the store of this shard is not of the deployment in its last division: {error}"
        ) from error
    return wanted


async def count_in_store(settings: Settings) -> int | None:
    """Return with how many workers the deployment in a store was created; None in an empty one."""
    origin = await _read(settings, alone(settings))
    return None if origin is None else _count(origin.division)


def _count(found: Division) -> int:
    try:
        return map_of(found.shards).count if found.shards else 1
    except MapUnreadable as error:
        raise CannotStart(f"the store of shard 0 cannot be used: {error}") from error


def _check(found: Division, settings: Settings, placement: Placement) -> None:
    """Refuse another number of shards, and rules for which channels have other homes."""
    count = _count(found)
    if count != placement.count:
        raise OtherCount(count, placement.count)
    check_homes(found.homes, settings.channels)
