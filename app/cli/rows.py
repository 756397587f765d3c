"""Rows that Spark found: as a table, as JSON lines, or kept as Parquet."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.output import print_json, print_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pipeline.reports.catalogue import Result


def _new(place: Path | None) -> Path | None:
    """A folder that is not there: said before the work, not behind it."""
    if place is not None and place.exists():
        raise typer.BadParameter(f"{place} is there already: name a new folder")
    return place


Parquet = Annotated[
    Path | None,
    typer.Option("--parquet", metavar="DIR", callback=_new, help="Write all rows there, too."),
]


def keep(found: "DataFrame", place: Path | None) -> None:
    """All rows, if somebody wants them."""
    if place is not None:
        found.write.mode("error").parquet(f"file://{place.resolve()}")


def show_result(result: "Result", *, as_json: bool) -> None:
    """The first rows."""
    if as_json:
        for row in result.rows:
            print_json(dict(zip(result.columns, row, strict=True)), is_line=True)
    else:
        print_table([column.upper() for column in result.columns], result.rows)
