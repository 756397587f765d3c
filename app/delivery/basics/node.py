"""The identity of this server, and its timestamps, which are the ids of messages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

NS_PER_MS: Final = 1_000_000
# A cursor is an id in microseconds, so no two ids may share a microsecond.
_NS_PER_US = 1000


class TimestampSource:
    """Returns increasing timestamps in nanoseconds since 1970, at most one in each microsecond.

    They increase even if the wall clock stops or is set back.

    Args:
        newest: The newest timestamp that an earlier process returned.
        wall_ns: Reads the clock.
    """

    def __init__(self, newest: int, wall_ns: Callable[[], int]) -> None:
        self._newest = newest
        self._wall_ns = wall_ns

    def __call__(self) -> int:
        self._newest = max(self._newest + _NS_PER_US, self._wall_ns())
        return self._newest


@dataclass(frozen=True, slots=True)
class Node:
    """The server's name, and its source of timestamps."""

    name: str
    stamp: Callable[[], int]

    def now_ms(self) -> int:
        return self.stamp() // NS_PER_MS
