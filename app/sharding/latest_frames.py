"""Frames of the log of this shard that its store may have lost: as they were, or written again."""

from typing import Final

from holdfast.cluster.frames import read
from holdfast.cluster.log import ForShard, parts_of
from holdfast.cluster.places import NOWHERE, Place
from holdfast.store.format.log_scripts import FOR_ALL, LoggedFrame, Parts
from holdfast.store.framing.latest import Latest

_MOST_BYTES: Final = 16 * 1024 * 1024


class LatestFrames(Latest[LoggedFrame]):
    """Remembers the last frames, each with its place."""

    def __init__(self) -> None:
        super().__init__(_MOST_BYTES)

    def add_frame(self, before: Place, place: Place, frame: Parts, now: float) -> None:
        """Remember a frame between these places."""
        text = "" if before == NOWHERE else str(before)
        size = sum(map(len, frame.parts.values()))
        self.add(LoggedFrame(text, str(place), frame.parts), size, now)


def again(frame: LoggedFrame) -> Parts | None:
    """Return a frame with the same entries, if it has any: facts and places have changed since."""
    entries: list[ForShard] = []
    for name, part in frame.parts.items():
        shard = None if name == FOR_ALL else int(name)
        entries += [ForShard(entry, shard) for entry in read(part).all_entries()]
    return Parts(len(entries), parts_of(entries)) if entries else None
