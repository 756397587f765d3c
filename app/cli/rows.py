"""Prints Spark's rows as a table or JSON lines, or writes them as Parquet."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.output import print_json, print_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from holdfast.pipeline.reports.catalogue import Result


def _new(place: Path | None) -> Path | None:
    """Check before the work that the folder does not exist."""
    if place is not None and place.exists():
        raise typer.BadParameter(f"{place} exists already: name a new folder")
    return place


Parquet = Annotated[
    Path | None,
    typer.Option(
        "--parquet", metavar="DIR", callback=_new, help="Also write all rows to this folder."
    ),
]


def keep(found: "DataFrame", place: Path | None) -> None:
    """Write all rows, if requested."""
    if place is not None:
        found.write.mode("error").parquet(f"file://{place.resolve()}")


def show_result(result: "Result", *, as_json: bool) -> None:
    """Print the first rows."""
    if as_json:
        for row in result.rows:
            print_json(dict(zip(result.columns, row, strict=True)), is_line=True)
    else:
        print_table([column.upper() for column in result.columns], result.rows)
