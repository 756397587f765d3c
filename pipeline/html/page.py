"""One page with pictures and tables, whole in itself: it may be mailed, and asks nobody."""

from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape

from pipeline.html.charts import number
from pipeline.html.sections import SECTIONS
from pipeline.reports.catalogue import Result

# Colours that people with any eyes tell apart, on light and on dark.
_COLOURS = ("#0072b2", "#e69f00", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
# Rows of a table.
_MOST = 200
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #888 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin: 0 } h2 { font-size: 1.2rem; margin: 2.5rem 0 0 }
p { margin: .3rem 0 } .dim { color: var(--dim) }
nav a { margin-right: 1rem }
svg { width: 100%; height: auto; margin: .8rem 0; font-size: 12px }
svg text { fill: currentColor } svg .told { fill: var(--dim) } .axis { stroke: var(--line) }
polyline { fill: none; stroke-width: 2 }
.legend span { margin-right: 1rem; font-size: .85rem }
.legend i { display: inline-block; width: .7rem; height: .7rem; margin-right: .3rem }
details { margin: .5rem 0; overflow-x: auto } summary { cursor: pointer; color: var(--dim) }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line) }
td.n { text-align: right }
"""


def page(results: Mapping[str, Result], *, source: str) -> str:
    """The page; `results` by the names of reports, `source` says of what."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    links = "".join(f'<a href="#{name}">{escape(SECTIONS[name].title)}</a>' for name in results)
    parts = "".join(_section(name, result) for name, result in results.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>Holdfast: what became of messages</title><style>{_STYLE}{_paint()}</style></head>"
        f'<body><h1>What became of messages</h1><p class="dim">{escape(source)}, {now}</p>'
        f"<nav>{links}</nav>{parts}</body></html>\n"
    )


def _paint() -> str:
    return "".join(
        f".c{n} {{ fill: {colour} }} .l{n} {{ stroke: {colour} }} .b{n} {{ background: {colour} }} "
        for n, colour in enumerate(_COLOURS)
    )


def _section(name: str, result: Result) -> str:
    section = SECTIONS[name]
    head = f'<h2 id="{name}">{escape(section.title)}</h2><p class="dim">{escape(section.text)}</p>'
    if not result.rows:
        return f"{head}<p>{escape(section.empty)}</p>"
    return f"{head}{section.picture(result)}{_table(result)}"


def _table(result: Result) -> str:
    heads = "".join(f"<th>{escape(column)}</th>" for column in result.columns)
    shown = result.rows[:_MOST]
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown)
    of = f" of {len(result.rows):,}" if len(result.rows) > len(shown) else ""
    count = f"Table: {len(shown)}{of}"
    return f"<details><summary>{count}</summary><table><tr>{heads}</tr>{rows}</table></details>"


def _cell(value: object) -> str:
    if isinstance(value, (int, float)):
        return f'<td class="n">{number(value)}</td>'
    return f"<td>{escape('' if value is None else str(value))}</td>"
