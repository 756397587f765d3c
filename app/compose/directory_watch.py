"""Checks periodically that the directories that the server depends on still exist."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from holdfast.store.links.link import StoreLink
from holdfast.store.store import Store

log = logging.getLogger(__name__)

_EVERY_S = 1.0
GONE = "the data directory is gone"


class DirectoryWatch:
    """Makes the store unavailable while its directory is missing: writes would be lost.

    Args:
        directories: Each says whether a directory is in place. They may block.
        link: The link to a store that keeps its files there; None if the store is elsewhere.
    """

    def __init__(
        self, directories: Sequence[Callable[[], bool]], store: Store, link: StoreLink | None
    ) -> None:
        self._directories = directories
        self._store = store
        self._link = link
        self.is_complete = True

    async def run(self) -> None:
        """Run until the task is cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            self._find(is_complete=await asyncio.to_thread(self._look))
            self._store.probe()

    def complaint(self) -> str | None:
        """Return what keeps the server from doing its work now; None if nothing does."""
        return self._store.complaint if self.is_complete else GONE

    def _look(self) -> bool:
        return all(is_there() for is_there in self._directories)

    def _find(self, *, is_complete: bool) -> None:
        if is_complete == self.is_complete:
            return
        self.is_complete = is_complete
        if is_complete:
            log.warning("the data directory is back")
            if self._link is not None:
                self._link.resume()
        else:
            log.error(
                "%s: restore it, or restart the server%s",
                GONE,
                "" if self._link is None else "; until then nothing is stored",
            )
            if self._link is not None:
                self._link.suspend(GONE)
