"""Dead letters are kept for long, but not for ever, and not without bound."""

import asyncio
import logging

from app.delivery.letter_room import LetterRoom, Removal
from app.store.connection import StoreUnavailable
from app.store.letters import Letters

log = logging.getLogger(__name__)

_RETIRE_EVERY_S = 60.0
_PAUSE_S = 1.0
# What the log says of letters that were removed.
_WHY = {
    Removal.AGE: "older than dead_letter_age",
    Removal.COUNT: "there were more than dead_letter_count",
    Removal.BYTES: "all of them took more than dead_letter_bytes",
    Removal.SHARE: "those of a channel or a subject took more than dead_letter_share_bytes",
}


class LetterUpkeep:
    """Removes letters as soon as there are too many, and those that are too old once a minute."""

    def __init__(self, letters: Letters, room: LetterRoom, *, age_s: float) -> None:
        self._letters = letters
        self._room = room
        self._age_s = age_s
        self._loop = asyncio.get_running_loop()
        self._is_needed = asyncio.Event()
        room.on_excess = self._is_needed.set
        self._told = dict(room.removed)

    async def run(self) -> None:
        """Go on until the task is cancelled."""
        retire_at = self._loop.time()
        while True:
            self._is_needed.clear()
            try:
                await self._letters.make_room()
                if self._loop.time() >= retire_at:
                    retire_at = self._loop.time() + _RETIRE_EVERY_S
                    await self._letters.retire(self._age_s)
                    self._tell()
            except StoreUnavailable as error:
                log.info("old dead letters stay for a while: %s", error)
                await asyncio.sleep(_PAUSE_S)
            except Exception:
                # A letter that cannot be read, say: the others are bounded all the same.
                log.exception("dead letters could not be looked at")
                await asyncio.sleep(_RETIRE_EVERY_S)
            if not self._room.is_known:
                # Others changed the letters while they were looked at.
                self._is_needed.set()
                await asyncio.sleep(_PAUSE_S)
            await self._wait(retire_at)

    async def _wait(self, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self._is_needed.wait()
        except TimeoutError:
            pass

    def _tell(self) -> None:
        """Of all that were removed since this was told last."""
        for why, removed in self._room.removed.items():
            count = removed - self._told[why]
            if count:
                self._told[why] = removed
                level = logging.INFO if why is Removal.AGE else logging.WARNING
                log.log(level, "%d dead letters were removed: %s", count, _WHY[why])
