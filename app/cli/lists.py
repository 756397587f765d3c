"""Prints lists: the first items as a table or as JSON, or all of them as JSON lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated

import typer

from holdfast.cli.output import Column, Columns, Json, brief, note, print_items, print_json
from holdfast.cli.remote import Params, Server

_IN_A_TABLE = 100

# Sorting happens here, so the whole list must be read first.
_MOST_SORTED = 100_000


@dataclass(frozen=True, slots=True)
class ListRange:
    """The items of a list to show: how many at most, and sorted by which field."""

    limit: int | None
    field: str | None
    is_descending: bool

    def sorted(self, items: Sequence[Json]) -> Sequence[Json]:
        """Sort the items by the field; those without it come last."""
        if self.field is None or not items:
            return items
        if self.field not in items[0]:
            raise typer.BadParameter(f"--sort: choose one of {', '.join(items[0])}")
        known = [each for each in items if each[self.field] is not None]
        key = itemgetter(self.field)
        if isinstance(known[0][self.field] if known else None, dict | list):
            raise typer.BadParameter(f"--sort: {self.field} cannot be sorted: choose another field")
        rest = [each for each in items if each[self.field] is None]
        return sorted(known, key=key, reverse=self.is_descending) + rest


def range_of(limit: int | None, sort: str | None) -> ListRange:
    """Return what these options ask for."""
    field = None if sort is None else sort.removeprefix("-")
    return ListRange(limit, field, sort is not None and sort.startswith("-"))


Field = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD", help="Sort by this field of the --json output; -FIELD descending."
    ),
]
# The most items that the server shows of a list without pages.
_MOST_FIRST = 100


def _range(
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=1,
            help=f"Maximum number of items; default: {_IN_A_TABLE}, or all with --json.",
        ),
    ] = None,
    sort: Field = None,
) -> ListRange:
    return range_of(limit, sort)


def _first(
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", min=1, max=_MOST_FIRST, help="Maximum number, up to 100."),
    ] = 20,
    sort: Field = None,
) -> ListRange:
    return range_of(limit, sort)


Range = Annotated[ListRange, _range]
# The first items of a list without pages.
First = Annotated[ListRange, _first]

# Which of several workers has something.
SHARD = "shard"
# The data of messages.
DATA: Column = ("DATA", lambda each: "(too long)" if each["is_cut"] else brief(each["data"]))
# Of the entries of a queue.
ENTRIES = ("id", "channel", "state", "attempts", "bytes", DATA)


def print_first(
    server: Server, path: str, params: Params, columns: Columns, shown: ListRange
) -> None:
    """Print the first items of a list without pages, as a table or as a JSON array.

    Says if there are more, or if there may be.
    """
    limit = _MOST_FIRST if shown.limit is None else shown.limit
    asked = {**params, "limit": min(limit + 1, _MOST_FIRST)}
    found = server.get(path, asked)["items"]
    first = shown.sorted(found[:limit])
    if server.as_json:
        print_json(first)
    else:
        print_items(columns, first)
    if len(found) > limit:
        note(f"Showing {limit}; there are more: use --limit")
    elif len(found) == _MOST_FIRST:
        note(f"Showing {limit}; there may be more")


def print_list(
    server: Server, path: str, params: Params, columns: Columns, shown: ListRange
) -> None:
    """Print the first items of a list as a table, or all of them as JSON lines.

    Says if there are more.
    """
    is_sorted = shown.field is not None
    most = _IN_A_TABLE if shown.limit is None and not server.as_json else shown.limit
    wanted = _MOST_SORTED if is_sorted else most
    items: list[Json] = []
    goes_on = False
    for count, item in enumerate(server.items(path, params, wanted and wanted + 1)):
        if goes_on := count == wanted:
            break
        if server.as_json and not is_sorted:
            print_json(item, is_line=True)
        else:
            items.append(item)
    if goes_on and is_sorted:
        note(f"Only the first {_MOST_SORTED} items were sorted: add conditions to select fewer")
    first = shown.sorted(items)[:most]
    if first and SHARD in first[0]:
        # There are several workers.
        columns = (*columns, SHARD)
    if is_sorted or not server.as_json:
        print_items(columns, first, as_json=server.as_json)
    if len(items) > len(first) or (goes_on and not is_sorted):
        note(f"Showing {most}; there are more: use --limit")
