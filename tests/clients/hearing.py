"""What clients heard while a deployment was restarted, and what they should have heard."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

# So many numbers are enough to see what happened.
_SHOWN = 20


@dataclass(frozen=True)
class Hearing:
    """What one client heard: who published it, its number, and when it came, in ms."""

    name: str
    handshakes: int
    heard: Sequence[tuple[str, int, int]]
    faults: Sequence[tuple[str, int]]

    @classmethod
    def told(cls, told: Mapping[str, Any]) -> "Hearing":
        heard = [(by, number, at_ms) for by, number, at_ms in told["heard"]]
        faults = [(what, at_ms) for what, at_ms in told["faults"]]
        return cls(told["name"], told["handshakes"], heard, faults)

    def silence_s(self, since_s: float, until_s: float) -> float:
        """The longest time without a message that lies in this time, or reaches into it."""
        since_ms, until_ms = since_s * 1000, until_s * 1000
        times = [at_ms for _, _, at_ms in self.heard]
        reaching = [
            after - before
            for before, after in pairwise(times)
            if after >= since_ms and before <= until_ms
        ]
        return max(reaching, default=float("inf")) / 1000

    def wrongs(self, counts: Mapping[str, int], *, may_reconnect: bool = False) -> list[str]:
        """What it noticed, when each publisher had published so many messages."""
        faults = [] if may_reconnect else self.faults
        found = [f"{self.name}: {what} at {at_ms}" for what, at_ms in faults]
        if self.handshakes != 1:
            found.append(f"{self.name}: {self.handshakes} handshakes")
        for by, count in counts.items():
            numbers = [number for publisher, number, _ in self.heard if publisher == by]
            if numbers != list(range(count)):
                found.append(f"{self.name}, published by {by}: {_difference(numbers, count)}")
        return found

    def misses(self, by: str, accepted: Sequence[int]) -> list[str]:
        """Return what it should have heard of a publisher, at least once and in order."""
        numbers = [*dict.fromkeys(number for who, number, _ in self.heard if who == by)]
        heard = {*numbers}
        lost = [number for number in accepted if number not in heard]
        late = [number for before, number in pairwise(numbers) if number < before]
        if not lost and not late:
            return []
        what = f"lost {lost[:_SHOWN]}, too late {late[:_SHOWN]} of {len(accepted)}"
        return [f"{self.name}, published by {by}: {what}"]

    def disorder(self, publishers: Iterable[str]) -> list[str]:
        """Return what it heard twice or late, if it may have missed something between sessions.

        At its beginning, each session may hear what the one before has heard.
        """
        found = []
        for by in publishers:
            numbers = [number for who, number, _ in self.heard if who == by]
            wrong = [number for before, number in pairwise(numbers) if number <= before]
            if len(wrong) >= self.handshakes:
                found.append(f"{self.name}, published by {by}: twice or late {wrong[:_SHOWN]}")
        return found


def _difference(numbers: Sequence[int], count: int) -> str:
    times = Counter(numbers)
    lost = sorted(set(range(count)) - set(times))
    doubled = sorted(number for number, heard in times.items() if heard > 1)
    late = [number for before, number in pairwise(numbers) if number < before]
    return f"lost {lost[:_SHOWN]}, doubled {doubled[:_SHOWN]}, too late {late[:_SHOWN]}"
