"""A report page with charts and tables; self-contained, so that it can be mailed."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

from holdfast.pipeline.html.sections import SECTIONS
from holdfast.pipeline.html.tiles import tiles
from holdfast.pipeline.reports.catalogue import Result
from holdfast.pipeline.reports.columns import COLUMNS, TITLES, Column
from holdfast.pipeline.reports.forms import NUMBERS, written

# The number of colours in the style sheet.
_COLOURS = 6
# The maximum number of rows in a table.
_MOST = 200


def page(results: Mapping[str, Result], *, source: str) -> str:
    """Return the page; `results` by report name, `source` describes the data."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    links = "".join(f'<a href="#{name}">{escape(TITLES[name])}</a>' for name in results)
    parts = "".join(_section(name, result) for name, result in results.items())
    style = files("holdfast.pipeline.html").joinpath("page.css").read_text("utf-8")
    nav = f"<nav>{links}</nav>" if len(results) > 1 else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>Holdfast: message report</title><style>{style}{_paint()}</style></head>"
        f'<body><main><h1>Message report</h1><p class="faint">{escape(source)}, {now}</p>'
        f"{tiles(results)}{nav}{parts}</main></body></html>\n"
    )


def _paint() -> str:
    return "".join(
        f".b{n} {{ background: var(--c{n}) }} .l{n} {{ stroke: var(--c{n}) }} "
        f".f{n} {{ fill: var(--c{n}) }} "
        for n in range(_COLOURS)
    )


def _section(name: str, result: Result) -> str:
    section = SECTIONS[name]
    head = f'<section id="{name}"><h2>{escape(TITLES[name])}</h2>'
    if not result.rows:
        return f"{head}<p>{escape(section.empty)}</p></section>"
    finding = f'<p class="finding">{escape(section.finding(result))}</p>'
    text = f'<p class="faint">{escape(section.text)}</p>'
    return (
        f"{head}{finding}{text}{section.picture(result)}{_table(result, COLUMNS[name])}</section>"
    )


def _table(result: Result, columns: Sequence[Column]) -> str:
    known = {column.name: column for column in columns}
    shown, drawn = result.rows[:_MOST], [known[name] for name in result.columns]
    heads = "".join(
        f"<th{_kind(column)}>{escape(column.name.replace('_', ' '))}</th>" for column in drawn
    )
    rows = "".join(f"<tr>{''.join(map(_cell, row, drawn))}</tr>" for row in shown)
    of = f" of {len(result.rows):,}" if len(result.rows) > len(shown) else ""
    meanings = "".join(
        f"<dt>{escape(column.name.replace('_', ' '))}</dt><dd>{escape(column.meaning)}</dd>"
        for column in drawn
    )
    return (
        f"<details><summary>Table: {len(shown)}{of}</summary>"
        f'<div class="scroll"><table><tr>{heads}</tr>{rows}</table></div>'
        f"<dl>{meanings}</dl></details>"
    )


def _kind(column: Column) -> str:
    return ' class="n"' if column.form in NUMBERS else ""


def _cell(value: object, column: Column) -> str:
    return f"<td{_kind(column)}>{escape(written(value, column.form))}</td>"
