"""The names of channels in order, to find those that a pattern matches."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Container, Iterator
from typing import Final

from holdfast.delivery.channels import Channel

# With more new names than this, whoever asks would have to wait long.
_MANY: Final = 4096
# A name is inserted into the sorted ones unless there are so many new ones, as a share of all.
_SHARE: Final = 200

# One look: a name, and whether it is one that is asked for. If not, it stands for all those below
# one channel.
Look = tuple[str, bool]


class SortedNames:
    """The names of what is known; they are put in order when somebody asks.

    Args:
        known: What has these names: it gains and loses them first.
    """

    def __init__(self, known: Container[str]) -> None:
        self._known = known
        self._names: list[str] = []
        # Those that are not among the sorted ones yet, and those that still are.
        self._new: set[str] = set()
        self._gone: set[str] = set()

    def add(self, name: str) -> None:
        """Note that the name is known now."""
        if name in self._gone:
            self._gone.remove(name)
            return
        self._new.add(name)
        if len(self._new) > _MANY:
            self._sorted()

    def remove(self, name: str) -> None:
        """Note that the name is not known any more."""
        if name in self._new:
            self._new.remove(name)
        else:
            self._gone.add(name)

    def covered_by(self, pattern: Channel, after: str = "") -> Iterator[Look]:
        """Find the names that the channel or pattern matches, behind another name.

        None may come or go meanwhile.
        """
        if pattern.is_wild:
            stem, _, last = pattern.name.rpartition("/")
            # Patterns from outside do not match the server's own channels, which are not here.
            yield from self.beginning(stem + "/", after, is_flat=last == "*")
        elif pattern.name in self._known and pattern.name > after:
            yield pattern.name, True

    def beginning(self, prefix: str, after: str = "", *, is_flat: bool = False) -> Iterator[Look]:
        """Find the names that begin with the prefix, behind another name.

        None may come or go meanwhile.

        Args:
            is_flat: Whether only those without another slash are asked for.
        """
        names, gone = self._sorted(), self._gone
        place = max(bisect_left(names, prefix), bisect_right(names, after))
        while place < len(names):
            name = names[place]
            if not name.startswith(prefix):
                return
            deeper = name.find("/", len(prefix)) if is_flat else -1
            if deeper >= 0:
                yield name, False
                # Names that begin with "stem/" precede "stem0", which is the next character.
                place = bisect_left(names, name[:deeper] + "0", place)
                continue
            place += 1
            if name not in gone:
                yield name, True

    def _sorted(self) -> list[str]:
        names, new, gone = self._names, self._new, self._gone
        if len(gone) * 2 > len(names) or len(new) * _SHARE > len(names):
            self._names = [name for name in names if name not in gone]
            gone.clear()
            # Mostly sorted already, which is fast.
            self._names.extend(new)
            self._names.sort()
        else:
            for name in new:
                insort(names, name)
        new.clear()
        return self._names
