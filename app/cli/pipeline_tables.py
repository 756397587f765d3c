"""Tables of the pipeline, with the columns of `holdfast.pipeline.reports.columns`."""

from typing import TYPE_CHECKING

from holdfast.cli.output import Cell, print_rows, print_table

if TYPE_CHECKING:
    from holdfast.pipeline.reports.catalogue import Result


def print_result(table: str, result: "Result", *, as_json: bool) -> None:
    """Print a result: for people as they write it, for programs as it is."""
    if as_json:
        print_rows(*result, as_json=True)
        return
    # Other commands need not wait until these are loaded.
    from holdfast.pipeline.reports.columns import COLUMNS
    from holdfast.pipeline.reports.forms import written

    forms = {column.name: column.form for column in COLUMNS[table]}
    shown = [forms[name] for name in result.columns]
    rows = [
        [Cell(written(value, form), value) for value, form in zip(row, shown, strict=True)]
        for row in result.rows
    ]
    print_table([name.upper() for name in result.columns], rows)


def explain(table: str, *, as_json: bool) -> None:
    """Print what each column of a table means."""
    from holdfast.pipeline.reports.columns import COLUMNS

    meanings = [(column.name, column.meaning) for column in COLUMNS[table]]
    rows = meanings if as_json else [(name.upper(), meaning) for name, meaning in meanings]
    print_rows(("column", "meaning"), rows, as_json=as_json)
