"""True time, and processes that see it by their own clocks."""

import heapq
from collections.abc import Callable
from itertools import count

Act = Callable[[], None]


class Events:
    """What happens next, in the order of true time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Act]] = []
        self._numbers = count()

    def at(self, time: float, act: Act) -> None:
        heapq.heappush(self._heap, (max(time, self.now), next(self._numbers), act))

    def run(self, until: float) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, act = heapq.heappop(self._heap)
            act()
        self.now = until


class Machine:
    """A clock of a certain rate, and whether everything stands still."""

    def __init__(self, events: Events, *, rate: float, offset: float) -> None:
        self.events = events
        self.rate, self._offset = rate, offset
        self.frozen_until = 0.0

    def clock(self) -> float:
        """Return what a clock shows that also runs while the machine is suspended."""
        return self._offset + self.events.now * self.rate

    def true_time(self, clock: float) -> float:
        """Return when the clock shows this."""
        return (clock - self._offset) / self.rate


class Process:
    """What runs on a machine until it ends, unless one of both is frozen."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.is_alive = True
        self.frozen_until = 0.0

    def run(self, act: Act) -> None:
        """Do something as soon as the process runs."""
        events = self.machine.events
        thaws_at = max(self.frozen_until, self.machine.frozen_until)
        if not self.is_alive:
            return
        if thaws_at > events.now:
            events.at(thaws_at, lambda: self.run(act))
        else:
            act()

    def after(self, seconds: float, act: Act) -> None:
        """Do something later, by the clock of the machine."""
        events = self.machine.events
        events.at(events.now + seconds / self.machine.rate, lambda: self.run(act))
