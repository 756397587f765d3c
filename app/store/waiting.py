"""Those who wait to hear whether their message was kept, and for how long they do."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from app.delivery.keeper import Kept
from app.store.refusals import ScriptFailed, StoreRefused
from app.store.turn import Keeping

log = logging.getLogger(__name__)

# After this long without an answer a publisher is told that nobody knows.
_PATIENCE_S = 5.0


class Waiting:
    """Tells everyone once, and once more who was told that nobody knows."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # In the order of their calls, which is the order of the answers; with the time when
        # patience ends.
        self._calls: deque[tuple[float, Sequence[Keeping]]] = deque()
        self._alarm: asyncio.TimerHandle | None = None

    def begin(self, messages: Sequence[Keeping]) -> Callable[[object], None]:
        """What is to be called with the answer."""
        call = (self._loop.time() + _PATIENCE_S, messages)
        self._calls.append(call)
        if self._alarm is None:
            self._alarm = self._loop.call_at(call[0], self._ring)

        def answered(reply: object) -> None:
            if self._calls and self._calls[0] is call:
                self._calls.popleft()
            tell(messages, _meaning(reply))

        return answered

    def close(self) -> None:
        """Nobody's patience ends any more."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _ring(self) -> None:
        self._alarm = None
        now = self._loop.time()
        while self._calls and self._calls[0][0] <= now:
            _, messages = self._calls.popleft()
            tell(messages, Kept.UNKNOWN)
        if self._calls:
            self._alarm = self._loop.call_at(self._calls[0][0], self._ring)


def tell(messages: Sequence[Keeping], kept: Kept) -> None:
    """Tell each of them, whatever the others make of it."""
    for keeping in messages:
        try:
            keeping.done(kept)
        except Exception:
            log.exception("message %d was %s, which could not be used", keeping.message.id, kept)


def _meaning(reply: object) -> Kept:
    if isinstance(reply, (ScriptFailed, StoreRefused)):
        return Kept.REFUSED
    # A line that was closed before the answer came knows nothing.
    return Kept.UNKNOWN if isinstance(reply, Exception) else Kept.KEPT
