"""Which shards exist: one whose store is empty has lost what it had, and must not begin again.

That happens where a part of a cluster came back without its data, and no process that knows them
lives. Then operators restore a backup, or let the shard begin again without what it had.
"""

from collections.abc import Collection, Mapping
from typing import Final

from holdfast.hosts.watching import ShardSeen

_RECORD: Final = "#"


def record_of(shard: int) -> str:
    """Return the name under which the rows of hosts have that a shard was opened once.

    No host has such a name.
    """
    return f"{_RECORD}{shard}"


def recorded_in(names: Collection[str]) -> set[int]:
    """Return the shards that were opened once, by the names among the rows of hosts."""
    rest = (name.removeprefix(_RECORD) for name in names if name.startswith(_RECORD))
    return {int(each) for each in rest if each.isdecimal()}


class Existing:
    """What is known of shards by all that was read since the start.

    Args:
        shards: How many the deployment has.
    """

    def __init__(self, shards: int) -> None:
        self._count = shards
        # The shards that were opened once; None of them is ever new again.
        self._known: set[int] = set()
        # The shards whose store has answered, and was empty the last time.
        self._answered: set[int] = set()
        self._empty: set[int] = set()
        # The shards of which the store of the first one says it; None if that was never read.
        self._recorded: Collection[int] | None = None
        # Whether the first one's store was empty in the last look, and that of another was not.
        self._is_first_gone = False

    def saw(self, shards: Mapping[int, ShardSeen | None], recorded: Collection[int] | None) -> None:
        """Take note of a look: None for what could not be read."""
        for shard, seen in shards.items():
            if seen is None:
                continue
            self._answered.add(shard)
            if seen.epoch or seen.deployment:
                self._known.add(shard)
                self._empty.discard(shard)
            else:
                self._empty.add(shard)
        if recorded is not None:
            self._recorded = recorded
            self._known.update(recorded)
        is_first_gone = 0 in self._empty and bool(self._known)
        if is_first_gone and self._is_first_gone:
            # With the first shard, the records of the others are gone. In one look it may have
            # answered before it was opened, and another one after that.
            self._known |= self._empty
        self._is_first_gone = is_first_gone

    @property
    def emptied(self) -> list[int]:
        """The shards that exist, and whose store is empty."""
        first = {0} if self._is_first_gone else set()
        return sorted(self._empty & (self._known | first))

    @property
    def unrecorded(self) -> list[int]:
        """The shards of which the store of the first one is to say that they exist."""
        if self._recorded is None or 0 in self._empty:
            return []
        return sorted(self._known.difference(self._recorded))

    def may_open(self, shard: int) -> bool:
        """Return whether a shard has what it had, or is new."""
        if shard not in self._empty:
            return True
        if self._recorded is None or shard in self._known:
            return False
        # The first one is new if all are.
        return shard > 0 or (len(self._answered) == self._count and not self._known)
