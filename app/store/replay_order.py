"""The order of a replay: as the messages were published, in whatever order they died."""

from array import array
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import NamedTuple

from app.delivery.dead_letters import DeadLetter
from app.store.letter_search import letter_id

_FIELDS = 3


class Place(NamedTuple):
    """Where a letter stands in a replay."""

    message: int
    letter: int
    # Of the event, in bytes.
    size: int

    @property
    def id(self) -> str:
        """The id of the letter."""
        return letter_id(self.letter)

    @property
    def text(self) -> str:
        """What a job remembers of a place; sorts as places do."""
        return f"{self.message:019d} {self.id}"


class Order:
    """Letters by the age of their messages, from behind one place on.

    There may be as many as are kept at all: each takes three numbers here. What died in order
    makes one run; runs are merged while the replay goes, so that no sorting stops the server.
    """

    def __init__(self, behind: str = "") -> None:
        self._behind = behind
        self._runs: list[array[int]] = []
        self._last: Place | None = None

    def add(self, letters: Iterable[DeadLetter]) -> None:
        """Some more letters, few enough to be sorted at once."""
        places = sorted(Place(each.message, int(each.id), each.size) for each in letters)
        for place in places:
            if place.text <= self._behind:
                continue
            if self._last is None or place < self._last:
                self._runs.append(array("Q"))
            self._runs[-1].extend(place)
            self._last = place

    def steps(self, most: int, most_bytes: int) -> Iterator[list[Place]]:
        """All of them, at most so many at once and not many more bytes."""
        step: list[Place] = []
        size = 0
        for place in merge(*map(_places, self._runs)):
            step.append(place)
            size += place.size
            if len(step) == most or size > most_bytes:
                yield step
                step, size = [], 0
        if step:
            yield step


def _places(run: "array[int]") -> Iterator[Place]:
    return (Place(*run[at : at + _FIELDS]) for at in range(0, len(run), _FIELDS))
