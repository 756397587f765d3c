"""How much the history of a channel keeps, and how it keeps one message."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

# The default limits of one channel's history.
MOST_ENTRIES: Final = 10_000
HISTORY_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HistoryDepth:
    """The limits of one channel's history."""

    entries: int
    bytes: int = HISTORY_BYTES

    def to_row(self) -> list[int]:
        """Return what stores and other processes keep of it."""
        return [self.entries, self.bytes]


@dataclass(frozen=True, slots=True)
class Keeping:
    """How the history of a channel keeps one message."""

    depth: HistoryDepth
    # The subject or address whose quota pays for it; empty if none does.
    account: str = ""

    def to_row(self) -> list[Any]:
        """Return what other processes are told."""
        return [*self.depth.to_row(), self.account]

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> "Keeping":
        """Undo `to_row`."""
        *depth, account = row
        return cls(HistoryDepth(*depth), account)
