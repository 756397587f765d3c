"""What happens when the store becomes unavailable, or available again."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from holdfast.compose.cannot_start import CannotStart

# A store that has been restarted answers again within this time.
_PATIENCE_S = 1.0

log = logging.getLogger(__name__)


class StoreMonitor:
    """Logs the state of the store, and informs the parts that depend on it."""

    def __init__(self) -> None:
        # Called when the store is available again.
        self.on_back: Callable[[], None] | None = None
        # What is given up without the store, and why that is unavailable.
        self._patience: asyncio.Timeout | None = None
        self._why = ""

    def on_state(self, is_up: bool, why: str) -> None:
        if not is_up:
            log.error("the store is unavailable: %s", why)
            self._why = why
            self._give_up_at(asyncio.get_running_loop().time() + _PATIENCE_S)
            return
        self._give_up_at(None)
        if self.on_back is not None:
            log.warning("the store is available again")
            self.on_back()

    def _give_up_at(self, when: float | None) -> None:
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(when)

    @asynccontextmanager
    async def depended_on(self) -> AsyncIterator[None]:
        """Give up the block if the store stays unavailable, because another server can go on.

        Raises `CannotStart`.
        """
        try:
            async with asyncio.timeout(None) as self._patience:
                yield
        except TimeoutError:
            raise CannotStart(f"the store is unavailable: {self._why}") from None
        finally:
            self._patience = None
