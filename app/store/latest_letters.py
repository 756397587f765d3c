"""The latest changes of dead letters, for a store that loses them: only the store has letters."""

from collections import deque
from collections.abc import Callable, Iterator

from holdfast.store.scripts import ScriptCall

# How long a change is remembered while the store answers: longer than a replica is usually behind.
_AGE_S = 10.0
_MOST_BYTES = 8 * 1024**2


class LatestLetters:
    """Remembers the calls of the last seconds that stored or removed dead letters.

    Args:
        answered_at: Returns when the store last answered, in seconds of a monotonic clock.
    """

    def __init__(self, answered_at: Callable[[], float]) -> None:
        self._answered_at = answered_at
        self._calls: deque[tuple[float, int, ScriptCall]] = deque()
        self._bytes = 0

    def add(self, call: ScriptCall) -> None:
        """Remember a call. Its lists may change afterwards."""
        size = sum(len(word) for word in call.args if isinstance(word, (bytes, str)))
        copied = ScriptCall(call.script, [*call.keys], [*call.args])
        self._calls.append((self._answered_at(), size, copied))
        self._bytes += size
        self._drop_old()

    def calls(self) -> Iterator[ScriptCall]:
        """Yield the calls in their order, to be made again.

        Letters that are there stay as they are, and those that are gone stay away.
        """
        self._drop_old()
        for _, _, call in self._calls:
            yield ScriptCall(call.script, [*call.keys], [*call.args])

    def _drop_old(self) -> None:
        oldest = self._answered_at() - _AGE_S
        while self._calls and (self._calls[0][0] < oldest or self._bytes > _MOST_BYTES):
            self._bytes -= self._calls.popleft()[1]
