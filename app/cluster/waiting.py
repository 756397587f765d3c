"""A frame of another shard's log, until everybody here has got what it has for them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic

from holdfast.cluster.places import Incarnation, Place, PlaceUnreadable, place_of
from holdfast.cluster.reader_port import A, Gap

if TYPE_CHECKING:
    from holdfast.cluster.frames import Frame

# By name, the parts of a frame and the places around it.
Fields = Mapping[bytes, bytes]


class Waiting(Generic[A]):
    """A frame that was read and is not shown to everybody yet."""

    __slots__ = (
        "at_once",
        "before",
        "behind",
        "entries",
        "frames",
        "gap",
        "is_new",
        "is_stored",
        "later",
        "passed",
        "size",
    )

    def __init__(
        self,
        before: Place,
        behind: Place,
        *,
        passed: Sequence[Incarnation],
        entries: int,
        gap: Gap | None,
    ) -> None:
        # The place of the reader before the frame, which a gap may separate from the frame.
        self.before = before
        self.behind = behind
        self.passed = passed
        self.gap = gap
        self.entries = entries
        self.frames: Sequence[Frame] = ()
        self.at_once: list[A] = []
        self.later: list[A] = []
        self.size = 0
        # Whether those that need no store have not got it yet.
        self.is_new = True
        self.is_stored = True


def place_in(fields: Fields, name: bytes) -> Place:
    """Return a place that a frame names. Raises `PlaceUnreadable`."""
    text = fields.get(name)
    if text is None:
        raise PlaceUnreadable(f"a frame has no {name.decode()}")
    return place_of(text.decode("ascii", "replace"))
