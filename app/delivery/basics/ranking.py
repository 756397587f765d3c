"""Rankings of names by how often they come, in bounded memory: the summary of Misra and Gries.

A ranking forgets the smallest counts when there are too many names. It counts no name too often,
and knows how many each may lack at most, also after others were added to it.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import itemgetter
from typing import Final

from holdfast.delivery.basics.channels import REPLIES

# How many names a ranking has. A count then lacks at most this part of all: one in `MOST` + 1.
MOST: Final = 64
# How many names are counted exactly until they are ranked.
_RECENT: Final = 1000

_count_of = itemgetter(1)


class RankingKind(StrEnum):
    """Which names are ranked."""

    SENDERS = "senders"
    CHANNELS = "channels"
    RECEIVERS = "receivers"
    ERRORS = "errors"


class Ranking:
    """The names that came most often, with their counts."""

    __slots__ = ("counts", "missing")

    def __init__(self, counts: Mapping[str, int] | None = None, missing: int = 0) -> None:
        self.counts: dict[str, int] = {} if counts is None else dict(counts)
        # How many each count may be too low by, also zero of a name that is not there.
        self.missing = missing

    def add(self, counts: Mapping[str, int], missing: int = 0, most: int = MOST) -> None:
        """Add the counts of a time, of which each may lack so many."""
        own = self.counts
        for name, count in counts.items():
            own[name] = own.get(name, 0) + count
        self.missing += missing
        self.shorten(most)

    def shorten(self, most: int) -> None:
        """Forget the smallest counts, until there are so many names at most."""
        if len(self.counts) <= most:
            return
        # Each count loses as much as the largest one that goes.
        lost = sorted(self.counts.values())[-most - 1]
        self.counts = {name: count - lost for name, count in self.counts.items() if count > lost}
        self.missing += lost

    def renamed(self, rename: Callable[[str], str]) -> "Ranking":
        """Return the same with other names; those that become the same are one."""
        counts: dict[str, int] = {}
        for name, count in self.counts.items():
            new = rename(name)
            counts[new] = counts.get(new, 0) + count
        return Ranking(counts, self.missing)

    def first(self) -> list[tuple[str, int]]:
        """Return the names with their counts, the largest first."""
        return sorted(sorted(self.counts.items()), key=_count_of, reverse=True)


class _Count:
    """How often a name came. To raise it takes less time than to replace a value in a dict."""

    __slots__ = ("times",)

    def __init__(self) -> None:
        self.times = 0


class RecentNames:
    """Counts names until they are taken: often the one before comes again.

    Args:
        prefix: Names that begin with it count as one: the prefix with a star. Each of them may come
            too seldom to be ranked.
    """

    __slots__ = ("_count", "_counts", "_name", "_prefix", "_ranked")

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._counts: dict[str, _Count] = {}
        # The latest name, and its count.
        self._name, self._count = "", _Count()
        # What was too much for exact counts.
        self._ranked: Ranking | None = None

    def add(self, name: str, times: int = 1) -> None:
        """Count a name."""
        if name is not self._name:
            count = self._counts.get(name)
            self._count = self._new(name) if count is None else count
            self._name = name
        self._count.times += times

    def take(self) -> Ranking:
        """Return what was counted since the last time."""
        self._rank()
        ranking, self._ranked = self._ranked or Ranking(), None
        return ranking

    def _new(self, name: str) -> _Count:
        if len(self._counts) >= _RECENT:
            self._rank()
        count = self._counts[name] = _Count()
        return count

    def _rank(self) -> None:
        if self._ranked is None:
            self._ranked = Ranking()
        counts = {name: each.times for name, each in self._counts.items()}
        if self._prefix:
            _join(counts, self._prefix)
        self._ranked.add(counts)
        self._counts = {}
        # The next name begins again, also if it is the same.
        self._name, self._count = "", _Count()


def _join(counts: dict[str, int], prefix: str) -> None:
    """Let names with a prefix be one."""
    joined = [name for name in counts if name.startswith(prefix)]
    if joined:
        counts[f"{prefix}*"] = sum(map(counts.pop, joined))


class Rankings:
    """Who publishes most, on which channels, and who gets most, since they were last taken.

    What receivers get costs nothing then: their queues number all hand-overs.
    """

    __slots__ = ("_counted", "channels", "receivers", "senders")

    def __init__(self) -> None:
        self.senders, self.channels = RecentNames(), RecentNames(REPLIES)
        # By hand-overs.
        self.receivers = RecentNames()
        # By the number of a receiver, up to which number its hand-overs are counted.
        self._counted: dict[int, int] = {}

    def published(self, sender: str, channel: str) -> None:
        """Count an accepted message."""
        self.senders.add(sender)
        self.channels.add(channel)

    def restored(self, receiver: int, handed: int) -> None:
        """Record up to which number an earlier process had handed over, and counted."""
        self._counted[receiver] = handed

    def count(self, receiver: int, name: str, handed: int) -> None:
        """Count what a receiver was handed, up to this number of its queue."""
        if handed and (new := handed - self._counted.get(receiver, 0)) > 0:
            self.receivers.add(name, new)
            self._counted[receiver] = handed

    def ended(self, receiver: int, name: str, handed: int) -> None:
        """Count what a receiver was handed until its end."""
        self.count(receiver, name, handed)
        self._counted.pop(receiver, None)
