"""Places in the log of a shard.

The log is a stream of numbered frames. A place is right behind a frame: it says which incarnation
of the shard wrote the frame, under which number, and how many entries the log has had by then. An
incarnation begins when a process opens the store of the shard, or finds that it has lost changes.
Its store writes the same words into each frame, for the places before and behind it: see
`lua/log.lua`.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_NUMBER: Final = "(0|[1-9][0-9]{0,17})"
_OPENING: Final = re.compile(f"([0-9A-Za-z]{{8}}) {_NUMBER}-{_NUMBER}")
_PLACE: Final = re.compile(f"{_OPENING.pattern} {_NUMBER}")
# How many incarnations a reader remembers. Frames of older ones have been trimmed by then.
_MOST_PASSED: Final = 16


class PlaceUnreadable(ValueError):
    """What should be a place in a log is none."""


class Place(NamedTuple):
    """A place in a log, right behind a frame."""

    # Names the incarnation: no two have the same, even if the store forgot one.
    nonce: str
    # The frame's id in the stream: the number of the incarnation, and of the call that wrote it.
    fence: int
    n: int
    # How many entries the log has had, over all incarnations.
    total: int

    @property
    def id(self) -> str:
        """The id of the frame in the stream."""
        return f"{self.fence}-{self.n}"

    def __str__(self) -> str:
        return f"{self.nonce} {self.fence}-{self.n} {self.total}"


# The place of a reader that has taken nothing.
NOWHERE: Final = Place("00000000", 0, 0, 0)


def place_of(text: str) -> Place:
    """Return the place with this text; `NOWHERE` for none. Raises `PlaceUnreadable`."""
    if not text:
        return NOWHERE
    found = _PLACE.fullmatch(text)
    if found is None:
        raise PlaceUnreadable(f"{text[:80]!r} is no place in a log")
    return Place(found[1], int(found[2]), int(found[3]), int(found[4]))


def is_behind(place: Place, other: Place) -> bool:
    """Return whether what is before the one place may not be before the other."""
    if place.nonce == other.nonce:
        return place.n > other.n
    # If the store went back, the incarnation that it lost may have the same number.
    return place.fence >= other.fence


def has_reached(place: Place, wanted: Place) -> bool:
    """Return whether everything before a place is before this one, or was lost by its store."""
    if place.nonce == wanted.nonce:
        return place.n >= wanted.n
    return place.fence >= wanted.fence


def is_within(place: Place, end: Place) -> bool:
    """Return whether a log with this end has a place: its store did not go back behind it."""
    return place.n <= end.n if place.nonce == end.nonce else place.fence < end.fence


class Incarnation(NamedTuple):
    """An incarnation of a shard, and the id of a frame that it wrote."""

    nonce: str
    fence: int
    n: int

    @property
    def id(self) -> str:
        """The id of the frame in the stream."""
        return f"{self.fence}-{self.n}"

    def __str__(self) -> str:
        return f"{self.nonce} {self.fence}-{self.n}"


def incarnations_of(text: str) -> Sequence[Incarnation]:
    """Return incarnations: those with frames in a log, oldest first, or those that a reader passed.

    Raises `PlaceUnreadable`.
    """
    found = [_OPENING.fullmatch(each) for each in text.split(",")] if text else []
    if None in found:
        raise PlaceUnreadable(f"{text[:80]!r} is no list of openings")
    return [Incarnation(each[1], int(each[2]), int(each[3])) for each in found if each is not None]


def go_on(place: Place, passed: Sequence[Incarnation], listed: Sequence[Incarnation]) -> str:
    """Return the id behind which a reader goes on in a log that has these incarnations.

    `passed` are the incarnations that it read before, newest first, each with the last frame that
    it took. If its incarnation is not listed, the store of the log went back to a time before it:
    then it goes on in the newest incarnation that it knows. It took nothing of the later ones.
    """
    nonces = {incarnation.nonce for incarnation in listed}
    if place.nonce in nonces:
        return place.id
    known = [incarnation.id for incarnation in passed if incarnation.nonce in nonces]
    return known[0] if known else NOWHERE.id


def passed_with(passed: Sequence[Incarnation], place: Place) -> Sequence[Incarnation]:
    """Return the incarnations that a reader has passed once it leaves this place for another."""
    if place.nonce == NOWHERE.nonce:
        return passed
    others = [incarnation for incarnation in passed if incarnation.nonce != place.nonce]
    return (Incarnation(place.nonce, place.fence, place.n), *others)[:_MOST_PASSED]


def text_of(incarnations: Sequence[Incarnation]) -> str:
    """Return the text that `incarnations_of` reads."""
    return ",".join(map(str, incarnations))
