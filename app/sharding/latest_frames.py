"""The last frames of the log of this shard, in case that its store loses them."""

from collections import deque
from typing import Final

from holdfast.cluster.frames import read
from holdfast.cluster.log import Addressed, parts_of
from holdfast.cluster.places import NOWHERE, Place
from holdfast.store.log_scripts import FOR_ALL, LoggedFrame, Parts

# For how long they are remembered while the store answers. When it goes back, it loses seconds.
_KEEP_S: Final = 10.0
_MOST_BYTES: Final = 16 * 1024 * 1024


class LatestFrames:
    """Remembers frames for some seconds, and only the last ones if they are large.

    Args:
        most_bytes: How large they may be together.
    """

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._frames: deque[tuple[float, int, LoggedFrame]] = deque()
        self._bytes = 0

    def add(self, before: Place, place: Place, frame: Parts, now: float) -> None:
        """Remember a frame between these places."""
        size = sum(map(len, frame.parts.values()))
        self._frames.append((now, size, LoggedFrame(_text(before), str(place), frame.parts)))
        self._bytes += size
        while self._bytes > self._most_bytes:
            self._forget_first()

    def forget(self, answered_at: float) -> None:
        """Forget frames that were too old already when the store last answered."""
        while self._frames and self._frames[0][0] < answered_at - _KEEP_S:
            self._forget_first()

    def _forget_first(self) -> None:
        self._bytes -= self._frames.popleft()[1]

    def all(self) -> list[LoggedFrame]:
        """Return them, oldest first."""
        return [frame for _, _, frame in self._frames]


def again(frame: LoggedFrame) -> Parts | None:
    """Return a frame with the same entries, if it has any: facts and places have changed since."""
    entries: list[Addressed] = []
    for name, part in frame.parts.items():
        shard = None if name == FOR_ALL else int(name)
        entries += [Addressed(entry, shard) for entry in read(part).all_entries()]
    return Parts(len(entries), parts_of(entries)) if entries else None


def _text(place: Place) -> str:
    return "" if place == NOWHERE else str(place)
