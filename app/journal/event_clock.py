"""The clock of events."""

from collections.abc import Callable

from holdfast.journal.schema import NS_PER_US


class JournalClock:
    """The present time, and the time of the last reading; microseconds since 1970.

    Args:
        now_ns: Nanoseconds since 1970.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self.us = 0

    def read(self) -> int:
        """Read the clock and remember the time."""
        self.us = us = self._now_ns() // NS_PER_US
        return us

    def peek(self) -> int:
        """Read the clock without remembering the time."""
        return self._now_ns() // NS_PER_US
