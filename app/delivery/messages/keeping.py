"""How much the history of a channel keeps, and how it keeps one message."""

from dataclasses import dataclass
from typing import Final

# The default limits of one channel's history.
MOST_ENTRIES: Final = 10_000
HISTORY_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HistoryDepth:
    """The limits of one channel's history."""

    entries: int
    bytes: int = HISTORY_BYTES


@dataclass(frozen=True, slots=True)
class Keeping:
    """How the history of a channel keeps one message."""

    depth: HistoryDepth
    # The subject or address whose quota pays for it; empty if none does.
    account: str = ""
