"""Counts messages that did not wait any longer for stored ones before them, and says so."""

import logging
from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Final

from holdfast.units import counted

log = logging.getLogger(__name__)

# How often each cause is reported at most.
_PAUSE_S: Final = 10.0


class Cause(Enum):
    """Why a message came before a stored one of its channel, or over a link instead of the log."""

    # The store of the publisher's shard could not be read in time.
    SENDER_STORE = "sender_store"
    # The store of this shard did not take in time what its durable sessions get first.
    OWN_STORE = "own_store"
    # The store of this shard did not take in time what others read in its log.
    OWN_LOG = "own_log"


_WHY: Final = {
    Cause.SENDER_STORE: "another worker's store cannot be read",
    Cause.OWN_STORE: "the store does not take what named sessions get before them",
    Cause.OWN_LOG: "the store does not take them for other workers, which got them directly",
}


class Early:
    """The books of messages that came early: `passing` and `kept_first` explain for what they wait.

    Args:
        note: Notes a number of them for a cause in the journal.
    """

    def __init__(self, note: Callable[[str, int], None]) -> None:
        self._note = note
        self.counts: Counter[Cause] = Counter()
        # What is not reported yet, and when each cause was reported.
        self._due: Counter[Cause] = Counter()
        self._reported_at: dict[Cause, float] = {}

    def count(self, cause: Cause, messages: int) -> None:
        """Count messages that did not wait any longer."""
        self.counts[cause] += messages
        self._due[cause] += messages

    def tick(self, now: float) -> None:
        """Report what has not been reported, unless that was done a moment ago."""
        if not self._due:
            return
        for cause in [*self._due]:
            if now - self._reported_at.get(cause, -_PAUSE_S) >= _PAUSE_S:
                self._reported_at[cause] = now
                messages = self._due.pop(cause)
                self._note(cause.value, messages)
                log.warning(
                    "%s did not wait for stored messages before them: %s",
                    counted(messages, "message"),
                    _WHY[cause],
                )
