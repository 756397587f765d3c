"""Deadlines by the thousand without a timer each: buckets of a tenth of a second."""

from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

_PER_SECOND = 10
_NEVER = float("inf")
# So many numbers of buckets that are gone are forgotten only when their time comes.
_FEW = 64


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
        # Only those that have items.
        self._buckets: dict[int, set[T]] = {}
        # Their numbers, and some of buckets that are gone.
        self._order: list[int] = []

    def ring_by(self, item: T, due: float) -> None:
        """Make sure that the item rings soon after `due`, perhaps before."""
        if 0 < item.alarm <= due * _PER_SECOND + 1 or due == _NEVER:
            return
        self.drop(item)
        item.alarm = bucket = int(due * _PER_SECOND) + 1
        if bucket in self._buckets:
            self._buckets[bucket].add(item)
        else:
            self._buckets[bucket] = {item}
            heappush(self._order, bucket)

    def drop(self, item: T) -> None:
        """Forget the item."""
        if item.alarm:
            bucket = self._buckets[item.alarm]
            bucket.discard(item)
            if not bucket:
                del self._buckets[item.alarm]
                self._forget_numbers()
            item.alarm = 0

    def _forget_numbers(self) -> None:
        """Whoever moves far deadlines about must not fill the memory with them."""
        if len(self._order) > 2 * len(self._buckets) + _FEW:
            self._order = list(self._buckets)
            heapify(self._order)

    def ring(self, now: float, most: int | None = None) -> list[T]:
        """Take out what is due, so many items at most; the owner puts back what must ring again."""
        rung: list[T] = []
        present = int(now * _PER_SECOND)
        while self._order and self._order[0] <= present and len(rung) != most:
            number = self._order[0]
            bucket = self._buckets.get(number)
            while bucket and len(rung) != most:
                item = bucket.pop()
                item.alarm = 0
                rung.append(item)
            if not bucket:
                self._buckets.pop(number, None)
                heappop(self._order)
        return rung
