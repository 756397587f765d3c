"""Deadlines by the thousand without a timer each: buckets of a tenth of a second."""

from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

_PER_SECOND = 10
_NEVER = float("inf")


class Timed(Protocol):
    """Something with a deadline; `alarm` is the bucket in which it stands, 0 for none."""

    alarm: int

    def __hash__(self) -> int: ...


T = TypeVar("T", bound=Timed)


class Timers(Generic[T]):
    """Rings items at or a little after their time, never before the bucket that they were put in.

    An item whose deadline moved away is not moved: it rings early and is put back by its owner.
    That makes the usual case, a deadline that is pushed on again and again, free.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, set[T]] = {}
        self._order: list[int] = []

    def ring_by(self, item: T, due: float) -> None:
        """Make sure that the item rings soon after `due`, perhaps before."""
        if 0 < item.alarm <= due * _PER_SECOND + 1 or due == _NEVER:
            return
        self.drop(item)
        item.alarm = bucket = int(due * _PER_SECOND) + 1
        if bucket not in self._buckets:
            self._buckets[bucket] = set()
            heappush(self._order, bucket)
        self._buckets[bucket].add(item)

    def drop(self, item: T) -> None:
        """Forget the item."""
        if item.alarm:
            self._buckets[item.alarm].discard(item)
            item.alarm = 0

    def ring(self, now: float) -> list[T]:
        """Take out what is due; the owner puts back what must ring again."""
        rung: list[T] = []
        present = int(now * _PER_SECOND)
        while self._order and self._order[0] <= present:
            for item in self._buckets.pop(heappop(self._order)):
                item.alarm = 0
                rung.append(item)
        return rung
