"""Lists of the administration, sorted by a field."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.admin.faults import RequestFailed
from holdfast.web.admin.resources import ROUTES
from holdfast.web.admin.sorting import sorted_page, sorting_of, stretches_of
from holdfast.web.joint.lists import by_field, joined


class Kind(Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Item:
    name: str
    size: int | None
    kind: Kind = Kind.GOOD
    parts: tuple[int, ...] = ()


def _itself(item: Item) -> Item:
    return item


async def whole(items: Sequence[Item], sort: str, limit: int) -> list[Item]:
    """The list, read part by part."""
    found: list[Item] = []
    cursor = None
    while True:
        rows = stretches_of(items, _itself)
        page = await sorted_page(rows, sorting_of(sort, "name"), cursor, limit)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


def test_every_list_that_comes_in_pages_can_be_sorted() -> None:
    paged = {each.handler for each in ROUTES if "cursor" in each.params.model_fields}
    # Groups come by size, and the steps of a message by time.
    assert paged - {"groups", "trace"} == {
        each.handler for each in ROUTES if "sort" in each.params.model_fields
    }


ITEMS = [Item("b", 2), Item("a", 2), Item("d", None), Item("c", 10), Item("e", 1)]


@pytest.mark.parametrize("limit", [1, 2, 5, 9])
@pytest.mark.parametrize(
    ("sort", "names"),
    [("size", "eabcd"), ("-size", "cbaed"), ("name", "abcde"), ("-name", "edcba")],
)
async def test_a_list_is_sorted_by_a_field_and_what_has_no_value_comes_last(
    sort: str, names: str, limit: int
) -> None:
    assert [each.name for each in await whole(ITEMS, sort, limit)] == [*names]


async def test_a_list_is_sorted_by_the_words_of_an_enum() -> None:
    items = [Item("a", 1), Item("b", 1, Kind.BAD)]
    assert [each.name for each in await whole(items, "kind", 5)] == ["b", "a"]


@pytest.mark.parametrize(
    ("sort", "said"), [("colour", "choose one of name, size"), ("parts", "has no order")]
)
async def test_a_list_is_not_sorted_by_what_it_has_not(sort: str, said: str) -> None:
    with pytest.raises(RequestFailed, match=said):
        await whole(ITEMS, sort, 5)


@pytest.mark.parametrize("cursor", ["abc", "00", "5b315d", "e", b"[true,[],1]".hex()])
async def test_a_cursor_of_something_else_is_refused(cursor: str) -> None:
    sorting = sorting_of("size", "name")
    with pytest.raises(RequestFailed, match="cursor"):
        await sorted_page(stretches_of(ITEMS, _itself), sorting, cursor, 5)


_SHARES = st.lists(st.tuples(st.integers(0, 3) | st.none(), st.integers(0, 2)), max_size=20)


@given(_SHARES, st.sampled_from(["size", "-size"]), st.integers(1, 5))
async def test_the_lists_of_several_shards_are_merged_in_the_same_order(
    shares: list[tuple[int | None, int]], sort: str, limit: int
) -> None:
    items = [Item(f"{number:02}", size) for number, (size, _) in enumerate(shares)]
    homes = [home for _, home in shares]
    by_shard = [
        [each for each, home in zip(items, homes, strict=True) if home == n] for n in range(3)
    ]
    sorting = sorting_of(sort, "name")
    found: list[str] = []
    cursor = None
    while True:
        pages = [
            await sorted_page(stretches_of(its, _itself), sorting, cursor, limit)
            for its in by_shard
        ]
        bodies = [
            {"items": [{"name": i.name, "size": i.size} for i in p.items], "cursor": p.cursor}
            for p in pages
        ]
        page = joined(bodies, limit, by_field(sorting))
        found += [each["name"] for each in page["items"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == [each.name for each in await whole(items, sort, 50)]
