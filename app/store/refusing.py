"""A store that is there and takes no new messages: out of memory, above all."""

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

_TELL_EVERY_S = 60.0


class Refusing:
    """Knows whether the store refuses messages, and tells it once a minute.

    Args:
        time: Seconds of a clock that never jumps.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        # What the store said; empty while it takes messages.
        self.reason = ""
        # Since it was told last.
        self._count = 0
        self._tell_at = 0.0

    def hear(self, reason: str, messages: int) -> None:
        """The store has refused so many messages; none if it was only asked whether it would."""
        self._count += messages
        now = self._time()
        if not self.reason or now >= self._tell_at:
            log.error("the store takes no messages, %d were refused: %s", self._count, reason)
            self._count, self._tell_at = 0, now + _TELL_EVERY_S
        self.reason = reason

    def end(self) -> None:
        """The store has taken a message, or would."""
        if self.reason:
            log.warning("the store takes messages again, %d more were refused", self._count)
            self.reason, self._count = "", 0
