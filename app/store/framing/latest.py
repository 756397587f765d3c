"""The latest changes of a store, in case that it loses them."""

from collections import deque
from typing import Generic, TypeVar

Change = TypeVar("Change")

# For how long they are remembered while the store answers. When it goes back, it loses seconds: a
# replica is usually less far behind.
_KEEP_S = 10.0


class Latest(Generic[Change]):
    """Remembers changes for some seconds, and only the last ones if they are large.

    Args:
        most_bytes: How large they may be together.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._changes: deque[tuple[float, int, Change]] = deque()
        self._bytes = 0

    def add(self, change: Change, size: int, now: float) -> None:
        """Remember a change of so many bytes."""
        self._changes.append((now, size, change))
        self._bytes += size
        while self._bytes > self._most_bytes:
            self._forget_first()

    def forget(self, answered_at: float) -> None:
        """Forget changes that were too old already when the store last answered."""
        while self._changes and self._changes[0][0] < answered_at - _KEEP_S:
            self._forget_first()

    def _forget_first(self) -> None:
        self._bytes -= self._changes.popleft()[1]

    def all(self) -> list[Change]:
        """Return them, oldest first."""
        return [change for _, _, change in self._changes]
