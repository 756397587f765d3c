"""Limits of histories."""

from dataclasses import dataclass
from typing import Final

# The most messages that one channel keeps, and their size if nothing else is said.
MOST_ENTRIES: Final = 10_000
HISTORY_BYTES: Final = 1024 * 1024
# The largest size that a publisher may ask for. JavaScript counts no further.
MOST_BYTES: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class HistoryDepth:
    """The limits of one channel's history."""

    entries: int
    bytes: int = HISTORY_BYTES


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """The limits of all histories together."""

    entries: int = 100_000
    bytes: int = 64 * 1024 * 1024
    # What they keep on account of one subject or address; zero means no limit.
    share_entries: int = 50_000
    share_bytes: int = 32 * 1024 * 1024
