"""Channel names in sorted order, for finding all names that a pattern matches."""

from bisect import bisect_left, insort
from collections.abc import Container, Iterator
from itertools import chain, islice
from typing import Final

from holdfast.delivery.basics.channels import Channel

# A piece with more names is split, so adding a name moves at most this many.
_LONG: Final = 1024

# One step of a search: a name, and whether it matches. If it does not match, it stands for all
# names below one channel, which the search skips.
Look = tuple[str, bool]


class SortedNames:
    """Keeps names in sorted pieces, so that a change stays cheap however many names there are.

    Args:
        known: A container of the same names. Change it before this one.
    """

    def __init__(self, known: Container[str]) -> None:
        self._known = known
        # Sorted, non-empty lists, and the last name of each.
        self._pieces: list[list[str]] = []
        self._lasts: list[str] = []

    def add(self, name: str) -> None:
        pieces, lasts = self._pieces, self._lasts
        if not pieces:
            pieces.append([name])
            lasts.append(name)
            return
        at = min(bisect_left(lasts, name), len(lasts) - 1)
        piece = pieces[at]
        insort(piece, name)
        lasts[at] = piece[-1]
        if len(piece) > _LONG:
            middle = len(piece) // 2
            pieces.insert(at + 1, piece[middle:])
            lasts.insert(at, piece[middle - 1])
            del piece[middle:]

    def remove(self, name: str) -> None:
        at = bisect_left(self._lasts, name)
        piece = self._pieces[at]
        del piece[bisect_left(piece, name)]
        if piece:
            self._lasts[at] = piece[-1]
        else:
            del self._pieces[at], self._lasts[at]

    def covered_by(self, pattern: Channel, after: str = "") -> Iterator[Look]:
        """Yield the names after `after` that the channel or pattern matches.

        Do not add or remove names during the iteration.
        """
        if pattern.is_wild:
            stem, _, last = pattern.name.rpartition("/")
            # Clients' patterns do not match the server's own channels, which are not stored here.
            yield from self.beginning(stem + "/", after, is_flat=last == "*")
        elif pattern.name in self._known and pattern.name > after:
            yield pattern.name, True

    def beginning(self, prefix: str, after: str = "", *, is_flat: bool = False) -> Iterator[Look]:
        """Yield the names after `after` that start with the prefix.

        Do not add or remove names during the iteration.

        Args:
            is_flat: Whether to leave out names with another slash after the prefix.
        """
        # The smallest string greater than `after`.
        since = max(prefix, after + "\0")
        while since:
            names, since = self._since(since), ""
            for name in names:
                if not name.startswith(prefix):
                    return
                deeper = name.find("/", len(prefix)) if is_flat else -1
                yield name, deeper < 0
                if deeper >= 0:
                    # All names that start with "stem/" sort before "stem0", because "0" follows
                    # "/".
                    since = name[:deeper] + "0"
                    break

    def _since(self, least: str) -> Iterator[str]:
        """Yield the names from `least` on."""
        at = bisect_left(self._lasts, least)
        if at < len(self._pieces):
            first = self._pieces[at]
            yield from islice(first, bisect_left(first, least), None)
            yield from chain.from_iterable(islice(self._pieces, at + 1, None))
