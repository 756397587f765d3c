"""What became of a webhook's calls in this process."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum


class CallOutcome(Enum):
    """What became of a call."""

    DELIVERED = "delivered"
    # The queue waits for the next attempt.
    PAUSED = "paused"
    # The message becomes a dead letter, at once or after the last attempt.
    REFUSED = "refused"
    GIVEN_UP = "given up"
    # The queue is held back until an operator resumes it.
    HELD = "held"


@dataclass(slots=True)
class WebhookFigures:
    """The calls of one webhook since this process began."""

    # The scheme and host of its URL, whose path may be secret.
    origin: str
    calls: Counter[CallOutcome] = field(default_factory=Counter)
    # What the latest call that delivered nothing was answered, and when, in ms since 1970.
    failure: str = ""
    failed_ms: int | None = None

    def count(self, outcome: CallOutcome, text: str, now_ms: int) -> None:
        """Count a call with its answer."""
        self.calls[outcome] += 1
        if outcome is not CallOutcome.DELIVERED:
            self.failure, self.failed_ms = text, now_ms
