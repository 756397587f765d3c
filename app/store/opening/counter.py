"""Shows other shards that this process lives, in a store that no other process can open."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.scripts import COUNT
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader
from holdfast.store.opening.write_right import WriteRight

log = logging.getLogger(__name__)

# How often the counter is raised, and how soon after a failure.
_EVERY_S: Final = 0.5
_PAUSE_S: Final = 0.1


class Counter:
    """Raises a counter twice a second, and at once if that is wanted.

    A raise that fails has no effect: others also learn over links that this process lives.

    Args:
        reader: A connection for this purpose only: nothing else may delay a raise.
        right: Knows the epoch, while the store is open.
        clock: Must not stop while the process does.
        raised: Called with the time at which a raise was sent that the store has confirmed.
    """

    def __init__(
        self,
        reader: Reader,
        keys: RedisKeys,
        right: WriteRight,
        clock: Callable[[], float],
        raised: Callable[[float], None],
    ) -> None:
        self._reader = reader
        self._keys = keys
        self._right = right
        self._clock = clock
        self._raised = raised
        self._is_wanted = asyncio.Event()

    def hurry(self) -> None:
        """Raise it as soon as possible."""
        self._is_wanted.set()

    async def run(self) -> None:
        """Run until the task is cancelled."""
        while True:
            self._is_wanted.clear()
            pause_s = _EVERY_S if await self._raise() else _PAUSE_S
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._is_wanted.wait()

    async def _raise(self) -> bool:
        """Raise it. Returns whether the store has confirmed that."""
        if not self._right.is_open:
            return False
        sent_at = self._clock()
        try:
            found = await self._reader.run(COUNT, [self._keys.meta], [self._right.epoch])
        except StoreUnavailable as error:
            log.debug("the counter was not raised: %s", error)
            return False
        if found:
            self._raised(sent_at)
        return bool(found)
