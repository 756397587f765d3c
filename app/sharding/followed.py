"""Which messages in the log others must have before later ones of their channels, on links."""

from collections.abc import Collection, Iterable
from typing import Final

from holdfast.cluster.places import NOWHERE, Place, has_reached, is_behind

# How many channels are told apart.
_MOST: Final = 1000
# How long all channels follow the same place. Messages wait less than that.
_BEGINNING_S: Final = 10.0


class Followed:
    """The channels of the last messages in the log of this shard.

    Args:
        others: The numbers of all other shards, which say how far they are.
    """

    def __init__(self, others: Iterable[int]) -> None:
        self._seen = dict.fromkeys(others, NOWHERE)
        # By channel, the place behind its last message, oldest first; the same for all channels, if
        # there are too many.
        self._places: dict[str, Place] = {}
        self._all: Place | None = None
        # Since when that holds.
        self._since: float | None = None

    def begin(self, end: Place) -> None:
        """Let all channels follow the log as an earlier process has left it."""
        if end != NOWHERE:
            self._places.clear()
            self._all, self._since = end, None

    def tick(self, now: float) -> None:
        """Forget after a while what all channels follow: who has nothing new may not say so."""
        if self._all is not None:
            if self._since is None:
                self._since = now
            elif now - self._since > _BEGINNING_S:
                self._all = None

    def put(self, channels: Collection[str], place: Place) -> None:
        """Take note that the frame before this place has messages of these channels."""
        places = self._places
        for channel in channels:
            places.pop(channel, None)
            places[channel] = place
        if len(places) > _MOST:
            places.clear()
            self._all, self._since = place, None

    @property
    def is_empty(self) -> bool:
        """Whether no channel follows anything."""
        return not self._places and self._all is None

    def of(self, channels: Iterable[str]) -> dict[str, str]:
        """Return the places that others must have reached before messages of these channels."""
        places = self._places
        found = {channel: places.get(channel, self._all) for channel in channels}
        return {channel: str(place) for channel, place in found.items() if place is not None}

    def saw(self, shard: int, place: Place) -> None:
        """Take note of how far a shard has taken the log, and forget what all have."""
        self._seen[shard] = place
        if not (self._places or self._all is not None):
            return
        least = place
        for each in self._seen.values():
            if is_behind(least, each):
                least = each
        while self._places:
            channel, first = next(iter(self._places.items()))
            if not has_reached(least, first):
                break
            del self._places[channel]
        if self._all is not None and has_reached(least, self._all):
            self._all = None
