"""Ends of logs that were read, and that their stores have lost since."""

import logging

from holdfast.cluster.places import Place
from holdfast.units import counted

log = logging.getLogger(__name__)


class LostEnds:
    """Counts what the logs of others have no more, although this shard has read it.

    Nothing waits for it: an incarnation gives no number twice, so what follows is read as it comes.
    """

    def __init__(self) -> None:
        # How many entries, by shard.
        self.entries: dict[int, int] = {}
        # By shard, the end for which they were counted last.
        self._ends: dict[int, Place] = {}

    def saw(self, shard: int, end: Place, place: Place) -> None:
        """Take note of the end of a log, as it was when this shard had read to a place."""
        is_lost = end.nonce == place.nonce and end.n < place.n
        if not is_lost or self._ends.get(shard) == end:
            return
        self._ends[shard] = end
        lost = max(0, place.total - end.total)
        self.entries[shard] = self.entries.get(shard, 0) + lost
        log.error(
            "the log of shard %d has lost its end, which was read here before: %s. Its messages "
            "may have arrived nowhere else",
            shard,
            counted(lost, "entry", "entries"),
        )
