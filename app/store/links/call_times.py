"""How long the store takes to answer calls, which it does in their order."""

from collections import deque
from time import monotonic_ns

from holdfast.delivery.basics.times import STEPS_S, Histogram


class CallTimes:
    """Counts the time of each answer, from when its call was sent for the last time."""

    def __init__(self) -> None:
        self.answers = Histogram(STEPS_S)
        # When each call that is not answered was sent, and the one that was taken elsewhere.
        self._sent_ns: deque[int] = deque()
        self._oldest_ns = 0

    def sent(self, count: int) -> None:
        """Note that so many calls leave, behind those that are not answered."""
        self._sent_ns.extend([monotonic_ns()] * count)

    def answered(self) -> None:
        """Count the time of the oldest call."""
        self.answers.add(monotonic_ns() - self._sent_ns.popleft())

    def take_back(self) -> None:
        """Forget all calls but the oldest, whose time goes on if it is asked for elsewhere."""
        self._oldest_ns = self._sent_ns[0] if self._sent_ns else 0
        self._sent_ns.clear()

    def go_on(self) -> None:
        """Note that the oldest call is about to be answered elsewhere."""
        self._sent_ns.append(self._oldest_ns)
