"""`holdfast now`: says once what is stuck, since when, and for whom."""

import sys
from typing import Annotated

import typer

from holdfast.cli.holds import hold_text
from holdfast.cli.lists import Field, ListRange, range_of
from holdfast.cli.options import ToServer
from holdfast.cli.output import (
    FOR,
    Column,
    Json,
    age,
    print_facts,
    print_items,
    print_json,
    print_rows,
    visible,
)
from holdfast.cli.program import Program
from holdfast.units import Form

program = Program()


@program.command()
def now(
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100, help="Maximum number in each list.")
    ] = 10,
    sort: Field = None,
    columns: Annotated[bool, typer.Option(help="Only say what each column means.")] = False,
    server: ToServer,
) -> None:
    """Show what is stuck now, since when, and for whom.

    Begins with the most important in one sentence. Ends with 0 whatever it finds. With --sort, each
    list that has the field is sorted by it, as far as it is shown.
    """
    tables = server.get("/now/tables")["items"]
    if columns:
        _explain(tables, as_json=server.as_json)
        return
    found = server.get("/now", {"limit": limit})
    _sort(found, tables, range_of(limit, sort))
    if server.as_json:
        print_json(found)
        return
    sys.stdout.write(visible(found["sentence"]) + "\n\n")
    facts = {name: found[name] for name in ("store", "waiting", "in_flight")}
    print_facts({**facts, "readers": found["figures"]["readers"]})
    for table in tables:
        _print_list(table, found[table["name"]])


def _sort(found: Json, tables: list[Json], order: ListRange) -> None:
    if order.field is None:
        return
    fields = {each["name"]: [column["name"] for column in each["columns"]] for each in tables}
    known = sorted({field for each in fields.values() for field in each})
    if order.field not in known:
        raise typer.BadParameter(f"--sort: choose one of {', '.join(known)}")
    for name, its in fields.items():
        if found[name] is not None and order.field in its:
            found[name]["items"] = order.sorted(found[name]["items"])


def _explain(tables: list[Json], *, as_json: bool) -> None:
    rows = [
        (table["name"], column["name"], column["meaning"])
        for table in tables
        for column in table["columns"]
    ]
    print_rows(("list", "column", "meaning"), rows, as_json=as_json)


def _print_list(table: Json, found: Json | None) -> None:
    if found is None or not found["items"]:
        return
    sys.stdout.write(f"\n{visible(table['title'])}\n")
    print_items([*map(_shown, table["columns"])], found["items"], wraps=True)
    if found["more"]:
        sys.stdout.write(f"and {found['more']:,} more\n")


def _shown(column: Json) -> str | Column:
    """Return the column as it is printed: times as ages, holds as text."""
    name = column["name"]
    match column["form"]:
        case Form.TIME:
            return age(name, FOR if name == "since" else name.upper())
        case Form.HOLD:
            return name.upper(), lambda item: hold_text(item[name])
        case _:
            return str(name)
