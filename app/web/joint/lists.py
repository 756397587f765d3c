"""Joins the lists of several shards, in their order, with one cursor for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    read: Callable[[str], Any]
    write: Callable[[Any], str]
    is_latest_first: bool = False
    # Makes one item of several at the same place. Without it, all stay.
    combine: Combine | None = None
    # What tells items apart in a list that is sorted otherwise; empty if it never is.
    name: str = ""


def by_name(field: str, combine: Combine | None = None) -> Order:
    """Return the order of a list by names, which are its cursors."""
    return Order(place=itemgetter(field), read=str, write=str, combine=combine, name=field)


def by_field(sorting: Sorting) -> Order:
    """Return the order of a list that is sorted by a field of its items."""
    return Order(
        place=lambda item: sorting.place(item[sorting.field], item[sorting.name]),
        read=sorting.read,
        write=sorting.write,
        is_latest_first=sorting.is_descending,
    )


# Only one shard has items, in an order that they do not show.
AS_THEY_ARE = Order(place=lambda _: 0, read=str, write=str)


def joined(pages: Sequence[Json], limit: int, order: Order) -> Json:
    """Return one page. A shard has told all of its items up to its cursor, and none beyond."""
    at: dict[Any, list[Json]] = {}
    for page in pages:
        for item in page["items"]:
            at.setdefault(order.place(item), []).append(item)
    ends = [order.read(page["cursor"]) for page in pages if page.get("cursor") is not None]
    places = sorted(at, reverse=order.is_latest_first)
    end = None
    if ends:
        end = (max if order.is_latest_first else min)(ends)
        places = [place for place in places if not _is_after(place, end, order)]
    if len(places) > limit:
        places = places[:limit]
        end = places[-1]
    items = [item for place in places for item in _items(at[place], order)]
    if "cursor" not in pages[0]:
        return {"items": items}
    return {"items": items, "cursor": None if end is None else order.write(end)}


def combined(pages: Sequence[Json], order: Order) -> list[Json]:
    """Return one item for each name, of whole lists in an order with a `combine`."""
    same: dict[Any, list[Json]] = {}
    for item in (item for page in pages for item in page["items"]):
        same.setdefault(order.place(item), []).append(item)
    return [each for found in same.values() for each in _items(found, order)]


def _is_after(place: Any, end: Any, order: Order) -> bool:  # noqa: ANN401 - as the order has it
    return bool(place < end if order.is_latest_first else place > end)


def _items(found: list[Json], order: Order) -> list[Json]:
    return found if order.combine is None else [order.combine(found)]
