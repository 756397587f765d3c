"""How far the logs of others were shown to those that need no store, over a change of processes."""

from collections.abc import Mapping
from typing import Any

from holdfast.cluster.places import NOWHERE, Place, is_within, place_of
from holdfast.cluster.reading import LogReader


class ShownPlaces:
    """Up to which place in each log they have got everything.

    The store may know an earlier place only, because it cannot take what durable sessions get.

    Args:
        before: The places of the process from which this one goes on; None if it begins without
            sessions that need no store.
    """

    def __init__(self, before: Mapping[int, str] | None) -> None:
        self._goes_on = before is not None
        self._before = {shard: place_of(place) for shard, place in (before or {}).items()}

    def within(self, shard: int, end: Place) -> Place:
        """Return the place in the log of a shard that ends there now."""
        if not self._goes_on:
            return end
        before = self._before.get(shard, NOWHERE)
        return before if is_within(before, end) else NOWHERE

    def left(self, readers: Mapping[int, LogReader[Any]]) -> Mapping[int, str]:
        """Return the places for the next process, as text."""
        found = self._before | {shard: each.at_once for shard, each in readers.items()}
        return {shard: str(place) for shard, place in found.items()}
