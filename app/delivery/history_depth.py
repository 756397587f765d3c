"""How much is kept of what was published."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HistoryDepth:
    """How much the history of one channel keeps."""

    entries: int
    bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """What all channels together keep."""

    entries: int = 100_000
    bytes: int = 64 * 1024 * 1024
