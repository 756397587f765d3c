"""The names of this server and its deployment, and timestamps, which are the ids of messages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from holdfast.delivery.basics.ignoring import ignore

NS_PER_MS: Final = 1_000_000
# The shard that this process serves. A server by itself is the only shard.
SHARD: Final = 0
# A timestamp is a microsecond and, in its last three digits, the shard: no two shards return the
# same one, and a cursor, which is an id in microseconds, is unique in its shard.
_NS_PER_US: Final = 1000
# A clock that is ahead of the wall clock loses one second in so many.
_SLOWER: Final = 2


def shard_of(timestamp: int) -> int:
    """Return the shard that a timestamp is of."""
    return timestamp % _NS_PER_US


class TimestampSource:
    """Returns increasing timestamps in nanoseconds since 1970, at most one in each microsecond.

    The last three digits are the shard. Timestamps increase even if the wall clock stops or is set
    back. They are above all that were heard of: what is accepted behind something of another shard
    has a later one, whatever the clocks of machines show. While this clock is ahead of its wall
    clock for this reason, it goes on at half the speed.

    Args:
        newest: The newest timestamp that an earlier process returned. Its last three digits may be
            any: earlier releases had no shards.
        wall_ns: Reads the clock.
    """

    def __init__(self, newest: int, wall_ns: Callable[[], int], shard: int = SHARD) -> None:
        self._newest_us = newest // _NS_PER_US
        self._wall_ns = wall_ns
        self._shard = shard
        # How far it was ahead of the wall clock when that showed a time.
        self._ahead_us, self._ahead_at_us = 0, 0

    def go_on_after(self, newest: int) -> None:
        """Return only timestamps after this one."""
        self._newest_us = max(self._newest_us, newest // _NS_PER_US)

    def hear(self, heard: int) -> None:
        """Return only timestamps after this one, which another shard has given."""
        us = heard // _NS_PER_US
        if us <= self._newest_us:
            return
        self._newest_us = us
        wall_us = self._wall_ns() // _NS_PER_US
        if us > wall_us + self._ahead(wall_us):
            self._ahead_us, self._ahead_at_us = us - wall_us, wall_us

    def skip(self, ns: int) -> None:
        """Go ahead at once, as if this time had passed."""
        self._wall_ns = partial(_later, self._wall_ns, ns)

    def __call__(self) -> int:
        wall_us = self._wall_ns() // _NS_PER_US
        if self._ahead_us:
            wall_us += self._ahead(wall_us)
        self._newest_us = us = max(self._newest_us + 1, wall_us)
        return us * _NS_PER_US + self._shard

    def read(self) -> int:
        """Return what the wall clock shows: timestamps may be ahead of it."""
        return self._wall_ns()

    def _ahead(self, wall_us: int) -> int:
        """Return how far this clock is ahead of the wall clock."""
        passed_us = max(wall_us - self._ahead_at_us, 0)
        left_us = self._ahead_us - passed_us // _SLOWER
        if left_us <= 0:
            self._ahead_us = 0
        return max(left_us, 0)


def no_time() -> int:
    """The clock of what measures nothing."""
    return 0


def _later(wall_ns: Callable[[], int], ns: int) -> int:
    """Read a clock that is ahead of another one."""
    return wall_ns() + ns


@dataclass(frozen=True, slots=True)
class Node:
    """The server's name, its source of timestamps, and the name of its deployment.

    `hear` takes note of a timestamp of another shard: later ones of this shard are above it. `read`
    returns the present time, which timestamps may be ahead of, without giving one.

    Ids of messages begin with the latter, so they stay the same when another server goes on with
    the store.
    """

    name: str
    stamp: Callable[[], int]
    deployment: str
    hear: Callable[[int], None] = ignore
    read: Callable[[], int] = no_time

    def id_of(self, stamp: int) -> str:
        """Return the id by which clients and operators know the message with this timestamp."""
        return f"{self.deployment}-{stamp}"

    def now_ms(self) -> int:
        return self.stamp() // NS_PER_MS
