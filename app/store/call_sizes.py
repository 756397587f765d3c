"""The most that one call may write, so that the store is busy for a short time only."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeVar

K = TypeVar("K")
T = TypeVar("T")

# The most entries of one call, about 1 us each: the store serves nobody else meanwhile.
MOST: Final = 5000
# The sizes of other items, in entries.
SESSION: Final = 10
MARK: Final = 4
MESSAGE: Final = 3
KEY: Final = 5
LETTER: Final = 20
# So many bytes take as long as one entry.
BYTES: Final = 1024


def shares(entries: Mapping[K, T], costs: Iterable[int]) -> Iterator[Mapping[K, T]]:
    """Divide a table into calls as `parts` does; usually one is enough."""
    known = list(costs)
    if sum(known) > MOST:
        yield from map(dict, parts(entries.items(), known))
    elif entries:
        yield entries


def parts(items: Collection[T], costs: Iterable[int]) -> Iterator[list[T]]:
    """Divide the items in order; each part fits into one call, or has one item."""
    part: list[T] = []
    total = 0
    for item, more in zip(items, islice(costs, len(items)), strict=True):
        if part and total + more > MOST:
            yield part
            part, total = [], 0
        part.append(item)
        total += more
    if part:
        yield part
