"""Removes dead letters by age and quota."""

import asyncio
import logging

from holdfast.delivery.messages.letter_quota import LetterQuota, Removal
from holdfast.store.letters.administration import Letters
from holdfast.store.links.connection import StoreUnavailable
from holdfast.units import counted

log = logging.getLogger(__name__)

_RETIRE_EVERY_S = 60.0
_PAUSE_S = 1.0
# Log texts of the reasons for a removal.
_WHY = {
    Removal.AGE: "older than dead_letter_age",
    Removal.COUNT: "there were more than dead_letter_count",
    Removal.BYTES: "together they exceeded dead_letter_bytes",
    Removal.SHARE: "those of a channel or subject exceeded dead_letter_share_bytes",
}


class LetterUpkeep:
    """Enforces the quota as soon as it is exceeded, and the age once a minute.

    Args:
        is_needed: Set when there are too many letters, or their number is unknown.
    """

    def __init__(
        self, letters: Letters, room: LetterQuota, is_needed: asyncio.Event, *, age_s: float
    ) -> None:
        self._letters = letters
        self._room = room
        self._age_s = age_s
        self._loop = asyncio.get_running_loop()
        self._is_needed = is_needed
        self._logged = dict(room.removed)

    async def run(self) -> None:
        """Run until the task is cancelled."""
        retire_at = self._loop.time()
        while True:
            self._is_needed.clear()
            try:
                await self._letters.make_room()
                if self._loop.time() >= retire_at:
                    retire_at = self._loop.time() + _RETIRE_EVERY_S
                    await self._letters.retire(self._age_s)
                    self._log_removals()
            except StoreUnavailable as error:
                log.info("cannot remove old dead letters now: %s", error)
                await asyncio.sleep(_PAUSE_S)
            except Exception:
                # For example an unreadable letter. The quota must be enforced nevertheless.
                log.exception("checking the quota of dead letters failed")
                await asyncio.sleep(_RETIRE_EVERY_S)
            if not self._room.is_known:
                # The letters changed during the survey.
                self._is_needed.set()
                await asyncio.sleep(_PAUSE_S)
            await self._wait(retire_at)

    async def _wait(self, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self._is_needed.wait()
        except TimeoutError:
            pass

    def _log_removals(self) -> None:
        """Log the removals since the last call."""
        for why, removed in self._room.removed.items():
            count = removed - self._logged[why]
            if count:
                self._logged[why] = removed
                level = logging.INFO if why is Removal.AGE else logging.WARNING
                log.log(level, "removed %s: %s", counted(count, "dead letter"), _WHY[why])
