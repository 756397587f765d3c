"""Who this server is."""

from collections.abc import Callable
from dataclasses import dataclass

_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """Who this server is, and its sense of wall time: rising, each value given once, in ns."""

    name: str
    stamp: Callable[[], int]

    def now_ms(self) -> int:
        return self.stamp() // _NS_PER_MS
