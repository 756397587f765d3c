"""A store that is available but takes no new messages, usually for lack of memory."""

import logging
from collections.abc import Callable

from holdfast.store.links.reply_errors import StoreRefused

log = logging.getLogger(__name__)

_LOG_EVERY_S = 60.0


class WriteRefusals:
    """Tracks whether the store refuses messages, and logs it once a minute.

    Args:
        time: Returns seconds of a monotonic clock.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        # The store's reason; empty while it takes messages.
        self.reason = ""
        # Refused messages since the last log line.
        self._count = 0
        self._log_at = 0.0

    def hear(self, reply: object, messages: int) -> None:
        """Hear the store's reply to a call with this many messages; zero for a probe."""
        if isinstance(reply, StoreRefused):
            self._begin(str(reply), messages)
        elif not isinstance(reply, Exception):
            self._end()

    def _begin(self, reason: str, messages: int) -> None:
        self._count += messages
        now = self._time()
        if not self.reason or now >= self._log_at:
            log.error("the store accepts no messages and has refused %d: %s", self._count, reason)
            self._count, self._log_at = 0, now + _LOG_EVERY_S
        self.reason = reason

    def _end(self) -> None:
        if self.reason:
            log.warning("the store accepts messages again; it had refused %d more", self._count)
            self.reason, self._count = "", 0
