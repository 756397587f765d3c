"""The order of a replay: that in which messages were published."""

from array import array
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import NamedTuple

from holdfast.delivery.letters.dead_letters import DeadLetter
from holdfast.store.letters.filter import letter_id

_FIELDS = 3


class ReplayPosition(NamedTuple):
    """The position of a letter in a replay."""

    message: int
    letter: int
    # Size of the event in bytes.
    size: int

    @property
    def id(self) -> str:
        """The id of the letter."""
        return letter_id(self.letter)

    @property
    def text(self) -> str:
        """The position as text, as a job stores it; sorts like positions."""
        return f"{self.message:019d} {self.id}"


class Order:
    """Letters by the age of their messages, starting after a position.

    There may be as many as the quota allows, each of which takes three numbers here. Letters that
    died in order form a run; runs are merged during the replay, so no large sort blocks the server.
    """

    def __init__(self, behind: str = "") -> None:
        self._behind = behind
        self._runs: list[array[int]] = []
        self._last: ReplayPosition | None = None

    def add(self, letters: Iterable[DeadLetter]) -> None:
        """Add letters, few enough to be sorted at once."""
        places = sorted(ReplayPosition(each.message, int(each.id), each.size) for each in letters)
        for place in places:
            if place.text <= self._behind:
                continue
            if self._last is None or place < self._last:
                self._runs.append(array("Q"))
            self._runs[-1].extend(place)
            self._last = place

    def steps(self, most: int, most_bytes: int) -> Iterator[list[ReplayPosition]]:
        """Return all positions in steps, bounded in number and roughly in bytes."""
        step: list[ReplayPosition] = []
        size = 0
        for place in merge(*map(_places, self._runs)):
            step.append(place)
            size += place.size
            if len(step) == most or size > most_bytes:
                yield step
                step, size = [], 0
        if step:
            yield step


def _places(run: "array[int]") -> Iterator[ReplayPosition]:
    return (ReplayPosition(*run[at : at + _FIELDS]) for at in range(0, len(run), _FIELDS))
