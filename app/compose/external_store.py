"""Compares what a server of Redis or Valkey promises with what the settings expect."""

import logging
from contextlib import AsyncExitStack

from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.failover_risks import failover_risks
from holdfast.store.links.link import StoreLink
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.resp import Unusable
from holdfast.store.local.embedded import Durability
from holdfast.store.local.promises import warn_if_weaker
from holdfast.store.writing.replicas import Replicas

log = logging.getLogger(__name__)


async def compare(
    settings: Settings, keys: RedisKeys, primary: Primary, link: StoreLink, stack: AsyncExitStack
) -> Replicas | None:
    """Check an external server's durability and replicas against the settings."""
    try:
        for risk in await failover_risks(primary, settings.durability):
            log.warning("%s", risk)
    except Unusable as error:
        log.info("the store does not show what a failover may lose: %s", error)
    mode, _, count = settings.durability.partition(":")
    if not count:
        await warn_if_weaker(link, primary, Durability(mode))
        return None
    replicas = Replicas(Reader(primary), keys, int(count))
    stack.push_async_callback(replicas.close)
    await replicas.open()
    return replicas
