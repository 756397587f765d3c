"""Lists in the order of one of their fields, in parts.

A method that answers with a page in its usual order says with `sortable` what the whole list is.
Its route takes the field to sort by, and calls the method only without one.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import wraps
from heapq import nlargest, nsmallest
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeVar

import orjson

from holdfast.web.admin.faults import RequestFailed, illegal
from holdfast.web.admin.fields import Sort
from holdfast.web.admin.views import Page

T = TypeVar("T")
View = TypeVar("View")
Stretches = AsyncIterator[Sequence[T]]
# A method of a resource.
Method = Callable[..., Coroutine[Any, Any, Page[View]]]
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

    @property
    def written(self) -> str:
        """What a request asks for."""
        return f"-{self.field}" if self.is_descending else self.field

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
            raise not_its_cursor() from None
        return is_first, value, name


def not_its_cursor() -> RequestFailed:
    """Return the refusal of a cursor that the list has not given."""
    return illegal("cursor: not a cursor of this list")


def sorting_of(sort: str, name: str) -> Sorting:
    """Return what a request asks for, by a field or by one with a `-` before it."""
    return Sorting(sort.removeprefix("-"), name, sort.startswith("-"))


def sortable(
    name: str, every: Callable[..., Stretches[T]], view: Callable[..., Any] = lambda _, row: row
) -> Callable[[Method[View]], Method[View]]:
    """Let the list of a route be sorted by any field of its rows.

    Args:
        name: The field that tells rows with the same value apart.
        every: The resource's method for all rows, by what selects them in the request.
        view: That for what is shown of one, if the rows lack what is costly.
    """

    def extended(usual: Method[View]) -> Method[View]:
        @wraps(usual)
        async def answer(*args: object, sort: str = "", **others: object) -> Page[View]:
            if not sort:
                return await usual(*args, **others)
            bound = given.bind(*args, **others)
            bound.apply_defaults()
            asked = bound.arguments
            resource, cursor, limit = (asked.pop(each) for each in ("self", "cursor", "limit"))
            rows = every(resource, **asked)
            page = await sorted_page(rows, sorting_of(sort, name), cursor, limit)
            return Page([view(resource, row) for row in page.items], page.cursor)

        # Routes are made of these.
        given = inspect.signature(usual)
        field = inspect.Parameter("sort", inspect.Parameter.KEYWORD_ONLY, default="")
        answer.__annotations__ = {**usual.__annotations__, field.name: Sort}
        answer.__signature__ = given.replace(parameters=[*given.parameters.values(), field])  # type: ignore[attr-defined]
        return answer

    return extended


async def sorted_page(
    stretches: Stretches[T], sorting: Sorting, cursor: str | None, limit: int
) -> Page[T]:
    """Return a part of a list of rows, of which each part reads all. Raises `RequestFailed`."""
    after = None if cursor is None else sorting.read(cursor)
    found: list[tuple[Place, T]] = []
    async for stretch in stretches:
        placed = ((_place(sorting, each), each) for each in stretch)
        fit = (each for each in placed if after is None or _is_after(sorting, each[0], after))
        found = sorting.first(limit + 1, chain(found, fit))
    items = [each for _, each in found[:limit]]
    return Page(items, sorting.write(found[limit - 1][0]) if len(found) > limit else None)


async def stretches_of(items: Iterable[T], row: Callable[[T], View]) -> Stretches[View]:
    """Yield the rows of these items in parts; other tasks run between them."""
    rest = iter(items)
    while stretch := [*map(row, islice(rest, _STRETCH))]:
        yield stretch
        await asyncio.sleep(0)


def _place(sorting: Sorting, row: Any) -> Place:  # noqa: ANN401 - any row
    names = [each.name for each in fields(row)]
    if sorting.field not in names:
        raise illegal(f"sort: choose one of {', '.join(names)}")
    value = getattr(row, sorting.field)
    value = value.value if isinstance(value, Enum) else value
    if not isinstance(value, str | int | float | None):
        raise illegal(f"sort: {sorting.field} has no order")
    return sorting.place(value, getattr(row, sorting.name))


def _is_after(sorting: Sorting, place: Place, after: Place) -> bool:
    try:
        return sorting.is_after(place, after)
    except TypeError:
        raise not_its_cursor() from None
