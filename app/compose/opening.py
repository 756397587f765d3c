"""Opens the store of a shard: its own Valkey, or a server of Redis or Valkey."""

import random
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.data_directory import DataDirectory
from holdfast.compose.placement import Placement, alone
from holdfast.compose.storage import Storage
from holdfast.compose.store_monitor import StoreMonitor
from holdfast.settings import Settings
from holdfast.store.format.deployment import Deployment, Origin
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.scripts import SCRIPTS
from holdfast.store.links.connection import REMEDY, StoreUnreachable
from holdfast.store.links.link import StoreLink
from holdfast.store.links.primary import Primary
from holdfast.store.links.script import Script
from holdfast.store.links.url import StoreUrl
from holdfast.store.local.embedded import Durability, EmbeddedValkey
from holdfast.store.opening.asking_to_open import Claimed, OnWaiting, ShardElsewhere
from holdfast.store.opening.generations import division_in, keys_of

if TYPE_CHECKING:
    from holdfast.store.opening.all_shards import Gate


async def open_storage(
    settings: Settings,
    directory: DataDirectory,
    stack: AsyncExitStack,
    on_end: Callable[[], None],
    placement: Placement | None = None,
    *,
    is_successor: bool = False,
    on_waiting: OnWaiting | None = None,
    on_lost: Callable[[], bool] | None = None,
    claimed: Claimed | None = None,
) -> Storage:
    """Open the store of a shard once no other process has it. The stack closes it.

    A successor only looks at it; `Storage.open` opens it. Raises `StoreUnavailable` or
    `CannotStart`.

    Args:
        on_end: Called when this process must end.
        on_waiting: Called when it begins to wait for another server.
        on_lost: Called when another server has taken the store from it; returns whether what ends
            this process follows.
        claimed: Why this host may have the shard; None without a list of hosts.
    """
    placement = placement or alone(settings)
    url, shard = settings.redis, placement.number
    embedded = None
    if url is None:
        embedded = EmbeddedValkey(directory.path, Durability(settings.durability))
        stack.push_async_exit(embedded)
        url = embedded.join() if is_successor else await embedded.open()
    monitor = StoreMonitor()
    try:
        primary = Primary(StoreUrl.of(url), RedisKeys(settings.namespace, shard).meta)
    except (ValueError, OSError) as error:
        raise CannotStart(f"redis: {error}") from error
    scripts = SCRIPTS if placement.is_alone else _with_log()
    link = StoreLink(primary, scripts=scripts, on_state=monitor.on_state, random=random.random)
    stack.push_async_callback(link.close)
    try:
        await link.open()
    except StoreUnreachable as error:
        if settings.redis is None:
            raise
        raise CannotStart(f"{error}; {REMEDY}") from error
    keys = await keys_of(link, settings.namespace, shard)
    if placement.host:
        from holdfast.compose.emptied import refuse_emptied

        await refuse_emptied(settings, placement, link, keys)
    with _telling(on_lost):
        origin, keys = await _origin(settings, placement, link, keys)
    replicas = None
    if settings.redis is not None:
        # An embedded store needs none of this.
        from holdfast.compose.external_store import compare

        replicas = await compare(settings, keys, primary, link, stack)
    storage = Storage(
        *(primary, link, keys, settings, placement, origin),
        *(directory, on_end, replicas, embedded),
        is_successor=is_successor,
        monitor=monitor,
        gate=_gate(settings, placement),
        on_waiting=on_waiting,
        on_lost=on_lost,
        claimed=claimed,
    )
    stack.push_async_callback(storage.close)
    if is_successor:
        await storage.store.look()
        return storage
    with _telling(on_lost):
        await storage.open()
    return storage


@contextmanager
def _telling(on_lost: Callable[[], object] | None) -> Iterator[None]:
    """Say so if another server has the shard."""
    try:
        yield
    except ShardElsewhere:
        if on_lost is not None:
            on_lost()
        raise


def _with_log() -> list[Script]:
    from holdfast.store.format.log_scripts import LOG_SCRIPTS

    return [*SCRIPTS, *LOG_SCRIPTS]


def _gate(settings: Settings, placement: Placement) -> "Gate | None":
    """Return what lets this shard open its store when its server may have the deployment.

    On a host of several, it needs no other shard.
    """
    if placement.is_alone or placement.host or settings.redis is None:
        return None
    from holdfast.compose.gates import gate_of

    return gate_of(settings, placement)


async def _origin(
    settings: Settings, placement: Placement, link: StoreLink, keys: RedisKeys
) -> tuple[Origin, RedisKeys]:
    """Return what this store has in common with the other shards, and its current keys."""
    found = None if placement.number else await division_in(link, keys)
    if placement.is_alone and not (found and found.shards):
        return Origin(Deployment.proposed(settings.deployment)), keys
    from holdfast.compose.shard_origin import first_origin, origin_of_others

    if placement.number:
        return await origin_of_others(settings, placement, link, keys)
    return first_origin(settings, placement, found), keys
