"""Refuses the store of a shard of several hosts that has lost what it had."""

from typing import Final, cast

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.placement import Placement
from holdfast.hosts.existing import record_of
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.link import StoreLink
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.url import StoreUrl

EMPTIED: Final = (
    "the store of shard {0} has come back empty, and no process that lives knows what it had: "
    "restore it, or run holdfast host renew {0}, and the shard begins again without its sessions "
    "and messages"
)


async def refuse_emptied(
    settings: Settings, placement: Placement, link: StoreLink, keys: RedisKeys
) -> None:
    """Refuse an empty store if the shard was opened once. Raises `CannotStart`.

    The hosts do not have it opened either. But a worker may end when its store has just come back.
    """
    reply = cast("list[bytes | None]", await link.ask("HMGET", keys.meta, "epoch", "deployment"))
    if not any(reply) and await _was_opened(settings, placement):
        raise CannotStart(EMPTIED.format(placement.number))


async def _was_opened(settings: Settings, placement: Placement) -> bool:
    if placement.number:
        first = RedisKeys(settings.namespace)
        record = record_of(placement.number)
        return bool(await _ask(settings, first.meta, "HEXISTS", first.hosts, record))
    metas = (RedisKeys(settings.namespace, shard).meta for shard in placement.others)
    return any([await _ask(settings, meta, "HEXISTS", meta, "epoch") for meta in metas])


async def _ask(settings: Settings, key: str, *command: str) -> object:
    reader = Reader(Primary(StoreUrl.of(settings.redis or ""), key))
    try:
        return await reader.ask(*command)
    finally:
        reader.close()
