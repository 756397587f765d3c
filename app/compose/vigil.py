"""Looks now and then whether what the server rests on is still there, though nobody asks for it."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from app.store.keeping import Store
from app.store.line import Line

log = logging.getLogger(__name__)

_EVERY_S = 1.0
GONE = "the data directory is gone"


class Vigil:
    """Takes the store away while its directory is not there: what it kept would be lost.

    Args:
        places: Whether each place that must not vanish is there. They may take their time.
        line: The line to a store that keeps its files there; None if it keeps them elsewhere.
    """

    def __init__(
        self, places: Sequence[Callable[[], bool]], store: Store, line: Line | None
    ) -> None:
        self._places = places
        self._store = store
        self._line = line
        self.is_complete = True

    async def run(self) -> None:
        """Go on until the task is cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            self._find(is_complete=await asyncio.to_thread(self._look))
            self._store.probe()

    def complaint(self) -> str | None:
        """Why the server cannot do its work now, if so."""
        return self._store.complaint if self.is_complete else GONE

    def _look(self) -> bool:
        return all(is_there() for is_there in self._places)

    def _find(self, *, is_complete: bool) -> None:
        if is_complete == self.is_complete:
            return
        self.is_complete = is_complete
        if is_complete:
            log.warning("the data directory is back")
            if self._line is not None:
                self._line.resume()
        else:
            log.error(
                "%s: bring it back, or start the server again%s",
                GONE,
                "" if self._line is None else "; until then nothing is kept",
            )
            if self._line is not None:
                self._line.suspend(GONE)
