"""Lists in the order of one of their fields, in parts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from heapq import nlargest, nsmallest
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeVar

import orjson

from holdfast.web.admin.faults import illegal
from holdfast.web.admin.views import Page

T = TypeVar("T")
View = TypeVar("View")
# Whether an item has a value, the value, and its name: a place in the list.
Place = tuple[bool, Any, str]

# How many items are looked at before other tasks run.
_STRETCH = 200


@dataclass(frozen=True, slots=True)
class Sorting:
    """By which field a list is sorted. What has no value comes last.

    Args:
        name: The field that tells items with the same value apart.
    """

    field: str
    name: str
    is_descending: bool

    def place(self, value: object, name: str) -> Place:
        """Return the place of an item: places rise along the list, or fall if it descends."""
        is_known = value is not None
        return is_known is self.is_descending, value if is_known else "", name

    def is_after(self, place: Place, other: Place) -> bool:
        return place < other if self.is_descending else place > other

    def first(self, count: int, found: Iterable[tuple[Place, T]]) -> list[tuple[Place, T]]:
        """Return the first of these, in order."""
        pick = nlargest if self.is_descending else nsmallest
        return pick(count, found, key=itemgetter(0))

    @staticmethod
    def write(place: Place) -> str:
        """Return the cursor that leads to what comes after this place."""
        return orjson.dumps(place).hex()

    @staticmethod
    def read(cursor: str) -> Place:
        """Return the place; raises `RequestFailed`."""
        try:
            is_first, value, name = orjson.loads(bytes.fromhex(cursor))
        except (ValueError, TypeError):
            raise illegal("cursor: not a cursor of this list") from None
        return is_first, value, name


def sorting_of(sort: str, name: str) -> Sorting:
    """Return what a request asks for, by a field or by one with a `-` before it."""
    return Sorting(sort.removeprefix("-"), name, sort.startswith("-"))


async def sorted_page(
    stretches: AsyncIterator[Sequence[T]],
    view: Callable[[T], View],
    sorting: Sorting,
    cursor: str | None,
    limit: int,
) -> Page[View]:
    """Return a part of a list of views, of which each part reads all. Raises `RequestFailed`."""
    after = None if cursor is None else sorting.read(cursor)
    found: list[tuple[Place, View]] = []
    async for stretch in stretches:
        placed = ((_place(sorting, each), each) for each in map(view, stretch))
        fit = (each for each in placed if after is None or _is_after(sorting, each[0], after))
        found = sorting.first(limit + 1, chain(found, fit))
    items = [each for _, each in found[:limit]]
    return Page(items, sorting.write(found[limit - 1][0]) if len(found) > limit else None)


async def stretches_of(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Yield these items in parts; other tasks run between them."""
    rest = iter(items)
    while stretch := [*islice(rest, _STRETCH)]:
        yield stretch
        await asyncio.sleep(0)


def _place(sorting: Sorting, view: Any) -> Place:  # noqa: ANN401 - any view
    names = [each.name for each in fields(view)]
    if sorting.field not in names:
        raise illegal(f"sort: choose one of {', '.join(names)}")
    value = getattr(view, sorting.field)
    value = value.value if isinstance(value, Enum) else value
    if not isinstance(value, str | int | float | None):
        raise illegal(f"sort: {sorting.field} has no order")
    return sorting.place(value, getattr(view, sorting.name))


def _is_after(sorting: Sorting, place: Place, after: Place) -> bool:
    try:
        return sorting.is_after(place, after)
    except TypeError:
        raise illegal("cursor: not a cursor of this list") from None
