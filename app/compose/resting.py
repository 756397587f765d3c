"""Lets a server come to rest, so that what it has in memory can be given to the next one."""

import asyncio
import logging
from collections.abc import Callable

from holdfast.bayeux.leaving.settling import settle, unsettled
from holdfast.bayeux.server import Bayeux
from holdfast.store.store import Store

log = logging.getLogger(__name__)

# How often to look whether the server rests.
_LOOK_S = 0.01


async def come_to_rest(
    bayeux: Bayeux, store: Store, clock: Callable[[], float], timeout_s: float
) -> str | None:
    """Answer held connects, and wait until everything that clients have begun is finished.

    Read no request any more, but keep ticking. Returns what is not finished in time, or None.
    """
    settle(bayeux, clock())
    why: str | None = "a turn"
    try:
        async with asyncio.timeout(timeout_s):
            while (why := await _unfinished(bayeux, store)) is not None:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        log.warning("not finished in time: %s", why)
    return why


async def _unfinished(bayeux: Bayeux, store: Store) -> str | None:
    why = unsettled(bayeux)
    if why is None:
        await store.answered()
        # Its answers may have begun something.
        why = unsettled(bayeux)
    return why
