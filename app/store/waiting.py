"""Those who wait to hear whether their message was kept, and for how long they do."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from app.delivery.keeper import Kept
from app.store.keyed import meaning, witness
from app.store.refusals import ScriptFailed, StoreRefused
from app.store.turn import Keeping

log = logging.getLogger(__name__)

# After this long without an answer a publisher is told that nobody knows.
_PATIENCE_S = 5.0
# This process did not run when its alarm rings so late: answers that have come are read first.
_LATE_S = 0.5

# Says of messages, by their witnesses, whether they are kept as well as they should be.
Confirm = Callable[[Sequence[int | str], Callable[[bool], None]], None]


class Waiting:
    """Tells everyone once, and once more who was told that nobody knows.

    What the store has but cannot be confirmed is UNKNOWN to its publisher, whom the durability
    promised more, and then KEPT at once: it is shown to its receivers rather than left in queues
    of which nobody knows until a restart.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, confirm: Confirm | None) -> None:
        self._loop = loop
        self._confirm = confirm
        # Those who were told nothing yet, in the order of their calls; with the time when
        # patience ends.
        self._calls: dict[int, tuple[float, Sequence[Keeping]]] = {}
        self._number = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0

    def begin(self, messages: Sequence[Keeping]) -> Callable[[object], None]:
        """What is to be called with the answer."""
        self._number = number = self._number + 1
        ends_at = self._loop.time() + _PATIENCE_S
        self._calls[number] = (ends_at, messages)
        if self._alarm is None:
            self._ring_at(ends_at)

        def answered(reply: object) -> None:
            kept = _meaning(reply)
            if kept is Kept.KEPT and self._confirm is not None:
                self._confirm([witness(keeping.message) for keeping in messages], confirmed)
            else:
                self._calls.pop(number, None)
                tell(messages, kept)

        def confirmed(is_confirmed: bool) -> None:
            is_untold = self._calls.pop(number, None) is not None
            if is_untold and not is_confirmed:
                tell(messages, Kept.UNKNOWN)
            tell(messages, Kept.KEPT)

        return answered

    def close(self) -> None:
        """Nobody's patience ends any more."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _ring_at(self, moment: float) -> None:
        self._alarm_at = moment
        self._alarm = self._loop.call_at(moment, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        now = self._loop.time()
        if now > self._alarm_at + _LATE_S:
            self._ring_at(now + _LATE_S)
            return
        while self._calls:
            number, (ends_at, messages) = next(iter(self._calls.items()))
            if ends_at > now:
                self._ring_at(ends_at)
                break
            del self._calls[number]
            tell(messages, Kept.UNKNOWN)


def hear(answer: asyncio.Future[object], reply: object) -> None:
    """Somebody waits for an answer, unless that has ended."""
    if not answer.done():
        answer.set_result(reply)


def tell(messages: Sequence[Keeping], kept: Kept) -> None:
    """Tell each of them, whatever the others make of it."""
    for keeping in messages:
        try:
            keeping.done(meaning(keeping.message, kept))
        except BaseException:
            log.exception("message %d was %s, which could not be used", keeping.message.id, kept)


def _meaning(reply: object) -> Kept:
    if isinstance(reply, (ScriptFailed, StoreRefused)):
        return Kept.REFUSED
    # A line that was closed before the answer came knows nothing.
    return Kept.UNKNOWN if isinstance(reply, Exception) else Kept.KEPT
