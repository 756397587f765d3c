"""Thousands of deadlines without one timer each: buckets of a tenth of a second."""

from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

_PER_SECOND: Final = 10
_NEVER: Final = float("inf")
# The heap may keep this many numbers of removed buckets until their time comes.
_FEW: Final = 64


class Timed:
    """An item with a deadline."""

    __slots__ = ("alarm",)

    def __init__(self) -> None:
        # The bucket that holds the item, 0 if none.
        self.alarm = 0


T = TypeVar("T", bound=Timed)


class Timers(Generic[T]):
    """Returns items when they are due: at their deadline or shortly after.

    An item stays in its bucket when its deadline moves to later: it rings early, and its owner
    calls `ring_by` again. This makes the common case cheap, a deadline that is postponed again and
    again.
    """

    def __init__(self) -> None:
        # Non-empty buckets by number. They are no sets, so that a run can be repeated exactly.
        self._buckets: dict[int, dict[T, None]] = {}
        # A heap of their numbers. It may contain numbers of removed buckets.
        self._order: list[int] = []

    def ring_by(self, item: T, due: float) -> None:
        """Ensure that the item rings at `due` or earlier."""
        if 0 < item.alarm <= due * _PER_SECOND + 1 or due == _NEVER:
            return
        self.drop(item)
        item.alarm = bucket = int(due * _PER_SECOND) + 1
        if bucket in self._buckets:
            self._buckets[bucket][item] = None
        else:
            self._buckets[bucket] = {item: None}
            heappush(self._order, bucket)

    def drop(self, item: T) -> None:
        """Remove the item."""
        if item.alarm:
            bucket = self._buckets[item.alarm]
            bucket.pop(item, None)
            if not bucket:
                del self._buckets[item.alarm]
                self._forget_numbers()
            item.alarm = 0

    def _forget_numbers(self) -> None:
        """Rebuild the heap, so that frequent moves of distant deadlines do not fill memory."""
        if len(self._order) > 2 * len(self._buckets) + _FEW:
            self._order = list(self._buckets)
            heapify(self._order)

    def ring(self, now: float, most: int | None = None) -> list[T]:
        """Remove and return up to `most` due items. The owner puts back what must ring again."""
        rung: list[T] = []
        present = int(now * _PER_SECOND)
        while self._order and self._order[0] <= present and len(rung) != most:
            number = self._order[0]
            bucket = self._buckets.get(number)
            while bucket and len(rung) != most:
                item, _ = bucket.popitem()
                item.alarm = 0
                rung.append(item)
            if not bucket:
                self._buckets.pop(number, None)
                heappop(self._order)
        return rung
