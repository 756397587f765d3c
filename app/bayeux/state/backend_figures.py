"""How the application that decides about clients has answered this process."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum


class Action(Enum):
    """What the application is asked about."""

    HANDSHAKE = "handshake"
    # Whether a login that is about to end goes on.
    REFRESH = "refresh"
    SUBSCRIBE = "subscribe"
    PUBLISH = "publish"


class AskOutcome(Enum):
    """What became of a question."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    # There was no answer, or one that means nothing.
    FAILED = "failed"
    # It was not asked, because too many questions waited,
    FULL = "full"
    # because it waited too long,
    LATE = "late"
    # or because the application had failed again and again.
    OPEN = "open"


@dataclass(slots=True)
class BackendFigures:
    """The questions since this process began."""

    # The scheme and host of its URL, whose path may be secret.
    origin: str
    asked: Counter[tuple[Action, AskOutcome]] = field(default_factory=Counter)
    # How many are being asked, and how many wait for that.
    open: int = 0
    waiting: int = 0
    # Since when the application is hardly asked, because it has failed again and again: in ms since
    # 1970.
    broken_ms: int | None = None
    # What the latest failure was, and when, in ms since 1970.
    failure: str = ""
    failed_ms: int | None = None

    @property
    def is_broken(self) -> bool:
        """Whether the application is hardly asked for now."""
        return self.broken_ms is not None
