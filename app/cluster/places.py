"""Places in the log of a shard.

The log is a stream of numbered frames. A place is right behind a frame: it says which opening of
the shard wrote the frame, under which number, and how many entries the log has had by then. The
store writes the same words into each frame, for the places before and behind it (`lua/log.lua`).
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_NUMBER: Final = "(0|[1-9][0-9]{0,17})"
_OPENING: Final = re.compile(f"([0-9A-Za-z]{{8}}) {_NUMBER}-{_NUMBER}")
_PLACE: Final = re.compile(f"{_OPENING.pattern} {_NUMBER}")
# How many openings a reader remembers. Frames of older ones have been trimmed by then.
_MOST_PASSED: Final = 16


class PlaceUnreadable(ValueError):
    """What should be a place in a log is none."""


class Place(NamedTuple):
    """A place in a log, right behind a frame."""

    # Names the opening: no two have the same, even if the store forgot one.
    nonce: str
    # The frame's id in the stream: the number of the opening, and of the call that wrote it.
    fence: int
    n: int
    # How many entries the log has had, over all openings.
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


class FirstFrame(NamedTuple):
    """An opening of a shard, and the id of the first frame that it wrote."""

    nonce: str
    fence: int
    n: int

    @property
    def before(self) -> str:
        """The id behind which a reader finds the frame."""
        # The number of a call is at least 1.
        return f"{self.fence}-{self.n - 1}"


def openings_of(text: str) -> Sequence[FirstFrame]:
    """Return the openings that a shard lists, oldest first. Raises `PlaceUnreadable`."""
    listed = text.split(",") if text else []
    found = [_OPENING.fullmatch(each) for each in listed]
    if None in found:
        raise PlaceUnreadable(f"{text[:80]!r} is no list of openings")
    return [FirstFrame(each[1], int(each[2]), int(each[3])) for each in found if each is not None]


class NextFrames(NamedTuple):
    """Where a reader goes on whose next frame does not follow from its place."""

    # Read behind this id.
    after: str
    # Whether frames may be missing in between.
    is_gap: bool


def go_on(place: Place, passed: Sequence[str], openings: Sequence[FirstFrame]) -> NextFrames:
    """Return where a reader goes on in a log that has these openings.

    `passed` are the openings whose frames it took before, newest first. Frames of an opening that
    it knows are not taken again; frames of others were never taken.
    """
    at = {opening.nonce: number for number, opening in enumerate(openings)}
    if place.nonce in at:
        following = openings[at[place.nonce] + 1 : at[place.nonce] + 2]
        return NextFrames(following[0].before if following else place.id, False)
    known = max((at[nonce] for nonce in passed if nonce in at), default=-1)
    unknown = openings[known + 1 : known + 2]
    if unknown:
        return NextFrames(unknown[0].before, True)
    # The log has nothing of an opening that the reader does not know.
    return NextFrames(place.id, False)


def passed_with(passed: Sequence[str], nonce: str) -> Sequence[str]:
    """Return the openings that a reader has passed after this one, newest first."""
    if nonce in passed or nonce == NOWHERE.nonce:
        return passed
    return (nonce, *passed)[:_MOST_PASSED]
