"""What must always hold, judged by true time."""

from collections import defaultdict
from collections.abc import Callable, Hashable


class Oracle:
    """Notes who speaks for which shard, and when nobody does."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # By shard, until when each process speaks.
        self._until: dict[int, dict[Hashable, float]] = defaultdict(dict)
        # Until when anybody spoke, or will.
        self._spoken: dict[int, float] = defaultdict(float)
        self.wrong: list[str] = []
        # The longest time in which nobody spoke for a shard, since `watch` was called.
        self.longest_silence_s = 0.0
        self._watched_since = 0.0

    def speaks(self, shard: int, process: Hashable, until: float) -> None:
        """A process speaks from now on until then, unless it ends."""
        now = self._clock()
        if until <= now:
            return
        speaking = self._until[shard]
        others = [each for each, end in speaking.items() if each is not process and end > now]
        if others:
            self.wrong.append(f"{now:.2f}: two speak for shard {shard}")
        self._note_silence(shard)
        speaking[process] = until
        self._spoken[shard] = max(self._spoken[shard], until)

    def ends(self, shard: int, process: Hashable) -> None:
        """A process speaks no more."""
        until = self._until[shard].pop(process, 0.0)
        if until == self._spoken[shard]:
            self._spoken[shard] = min(until, self._clock())

    def silence_s(self, shard: int) -> float:
        """For how long nobody has spoken for a shard."""
        return max(self._clock() - self._spoken[shard], 0.0)

    def watch(self) -> None:
        """Begin to measure silences."""
        self._watched_since, self.longest_silence_s = self._clock(), 0.0

    def _note_silence(self, shard: int) -> None:
        silence_s = self._clock() - max(self._spoken[shard], self._watched_since)
        self.longest_silence_s = max(self.longest_silence_s, silence_s)
