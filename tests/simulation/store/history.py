"""What a store has written, step by step: replicas and files have a beginning of it."""

from collections.abc import Sequence
from math import inf

from tests.simulation.store.command import Words, known
from tests.simulation.store.keyspace import Keyspace

# How many steps to remember before the oldest become a part of the base.
_MOST = 20_000


class History:
    """The steps, each of which was carried out as a whole.

    A position is the number of steps since the store began.
    """

    def __init__(self, base: Keyspace, begins_at: int = 0) -> None:
        self._base = base
        self._begins_at = begins_at
        # Each with the time at which it was carried out.
        self._steps: list[tuple[float, Sequence[Words]]] = []

    @property
    def end(self) -> int:
        return self._begins_at + len(self._steps)

    def add(self, effects: Sequence[Words], now: float) -> None:
        self._steps.append((now, effects))

    def at(self, position: int) -> Keyspace:
        """Return what a store has that has this much of it."""
        assert self._begins_at <= position <= self.end, "nobody can have this any more"
        found = self._base.copy()
        self._carry_out(found, position)
        return found

    def time_behind(self, position: int) -> float:
        """Return when the first step behind the position was carried out, if there is one."""
        steps = self._steps[position - self._begins_at :]
        return steps[0][0] if steps else inf

    def forget(self, needed: int) -> None:
        """Keep few of the steps before the position, which nobody needs one by one."""
        count = needed - self._begins_at
        if count > _MOST:
            self._carry_out(self._base, needed)
            del self._steps[:count]
            self._begins_at = needed

    def cut(self, position: int) -> None:
        """Lose everything behind the position."""
        del self._steps[position - self._begins_at :]

    def _carry_out(self, on: Keyspace, position: int) -> None:
        for _, effects in self._steps[: position - self._begins_at]:
            for words in effects:
                known(words[0]).run(on, words)
