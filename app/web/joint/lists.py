"""Joins the lists of several shards, in their order, with one cursor for all of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from holdfast.web.admin.sorting import Sorting
from holdfast.web.joint.asking import Json

Combine = Callable[[list[Json]], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """In which order a list has its items, and how a cursor names a place in it."""

    # The place of an item, and of a cursor.
    place: Callable[[Json], Any]
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str
    is_latest_first: bool = False
    # Makes one item of several at the same place. Without it, all stay.
    combine: Combine | None = None
    # What tells items apart in a list that is sorted otherwise; empty if it never is.
    name: str = ""


def by_name(field: str, combine: Combine | None = None) -> Order:
    """Return the order of a list by names, which are its cursors."""
    return Order(place=itemgetter(field), combine=combine, name=field)


def by_field(sorting: Sorting) -> Order:
    """Return the order of a list that is sorted by a field of its items."""
    return Order(
        place=lambda item: sorting.place(item[sorting.field], item[sorting.name]),
        read=sorting.read,
        write=sorting.write,
        is_latest_first=sorting.is_descending,
    )


# Only one shard has items, in an order that they do not show.
AS_THEY_ARE = Order(place=lambda _: 0)


def joined(pages: Sequence[Json], limit: int, order: Order) -> Json:
    """Return one page. A shard has told all of its items up to its cursor, and none beyond."""
    every = sorted(
        chain.from_iterable(page["items"] for page in pages),
        key=order.place,
        reverse=order.is_latest_first,
    )
    ends = [order.read(page["cursor"]) for page in pages if page.get("cursor") is not None]
    end = (max if order.is_latest_first else min)(ends) if ends else None
    items, last = list[Json](), None
    for count, (place, same) in enumerate(groupby(every, order.place)):
        if end is not None and (place < end if order.is_latest_first else place > end):
            break
        if count == limit:
            end = last
            break
        items += same if order.combine is None else [order.combine([*same])]
        last = place
    page: Json = {"items": items}
    if "cursor" in pages[0]:
        page["cursor"] = None if end is None else order.write(end)
    return page


def grouped(items: Iterable[Json], key: Callable[[Json], object], make: Combine) -> list[Json]:
    """Return one item for each key, made of those that have it."""
    same: dict[object, list[Json]] = {}
    for item in items:
        same.setdefault(key(item), []).append(item)
    return [*map(make, same.values())]


def every_item(pages: Iterable[Json]) -> Iterable[Json]:
    """Return the items of several lists."""
    return chain.from_iterable(page["items"] for page in pages)
