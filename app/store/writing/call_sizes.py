"""Limits of one call, so that the store is never busy for long."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeVar

K = TypeVar("K")
T = TypeVar("T")

# How many entries one call may have, about 1 us each. Meanwhile the store serves no other client.
MOST: Final = 5000
# The sizes of other items, in entries.
SESSION: Final = 10
RECORD: Final = 40
MARK: Final = 8
MESSAGE: Final = 3
KEY: Final = 5
LETTER: Final = 20
# This many bytes take as long as one entry.
BYTES: Final = 1024
# How many bytes a call may append to the log that other shards read.
FRAME: Final = 256 * 1024


def shares(entries: Mapping[K, T], costs: Iterable[int]) -> Iterator[Mapping[K, T]]:
    """Split a table into calls, as `parts` does. Usually one is enough."""
    known = list(costs)
    if sum(known) > MOST:
        yield from map(dict, parts(entries.items(), known))
    elif entries:
        yield entries


def parts(items: Collection[T], costs: Iterable[int], most: int = MOST) -> Iterator[list[T]]:
    """Split the items in order. Each part fits into one call or has a single item."""
    part: list[T] = []
    total = 0
    for item, more in zip(items, islice(costs, len(items)), strict=True):
        if part and total + more > most:
            yield part
            part, total = [], 0
        part.append(item)
        total += more
    if part:
        yield part
