"""What commands print: tables for people, lines for programs, JSON for both."""

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

import orjson
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from app.delivery.json_text import is_harmless, to_json

console = Console(highlight=False, soft_wrap=False)
_errors = Console(stderr=True, highlight=False, soft_wrap=True)
# What JSON leaves as it is and a terminal may obey.
_OBEYED = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Words that say how it stands with something, in the columns and facts that do.
_TELLING = frozenset({"STATE", "ACTIVE", "state", "active"})
_COLOURS = {
    **dict.fromkeys(("ALIVE", "done", "replayed", "yes"), "green"),
    **dict.fromkeys(("POLLING", "held", "no", "new", "canary", "running", "cancelled"), "yellow"),
    **dict.fromkeys(("DEAD", "stopped", "failed"), "red"),
}
# Columns of this width are shown whole, wider ones are cut to no less than that.
_SHORT = 12
_LEAST = 6
_BETWEEN = 2


def complain(text: str) -> None:
    """Say what went wrong."""
    _errors.print(Text.assemble(("holdfast:", "bold red"), " ", visible(text)))


def note(text: str) -> None:
    """Say something that is not part of the answer."""
    _errors.print(Text(visible(text)))


def visible(value: object) -> str:
    """A text in which nothing is hidden, and nothing that a terminal would obey."""
    text = "" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def when(ms: int | None) -> str:
    """A time of the server's in local time."""
    if ms is None:
        return ""
    return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(" ", "seconds")


def print_json(value: object, *, is_line: bool = False) -> None:
    """JSON, on one line or for reading."""
    if is_line:
        text = to_json(value).decode()
    elif is_harmless(value):
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    else:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    text = _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    sys.stdout.write(text + "\n")


class Moment(NamedTuple):
    """A time in a table: how long ago for people, exactly for programs."""

    ms: int | None


class Brief(NamedTuple):
    """A text in a table: what matters of it for people, all of it for programs."""

    text: str
    whole: str


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on a terminal; elsewhere lines with tabs, of which nothing is cut."""
    rows = list(rows)
    if console.is_terminal and not rows:
        console.print(Text("None.", "dim"))
        return
    shown = [[_for_people(cell) for cell in row] for row in rows]
    widths = _widths([head, *shown], console.width) if console.is_terminal else None
    if widths is None:
        _print_lines([head, *rows])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name, width in zip(head, widths, strict=True):
        table.add_column(name, no_wrap=True, width=width)
    for cells in shown:
        table.add_row(*(_coloured(name, cell) for name, cell in zip(head, cells, strict=True)))
    console.print(table)


def _print_lines(rows: Iterable[Sequence[object]]) -> None:
    for row in rows:
        sys.stdout.write("\t".join(map(_for_programs, row)) + "\n")


def _for_people(cell: object) -> str:
    match cell:
        case Moment(ms):
            return _ago(ms)
        case Brief(text):
            return visible(text)
        case _:
            return visible(cell)


def _for_programs(cell: object) -> str:
    match cell:
        case Moment(ms):
            return when(ms)
        case Brief(_, whole):
            return visible(whole)
        case _:
            return visible(cell)


def _widths(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """How wide columns may be, so that all are seen; None if there is too little room for that.

    The first column is what its row is called by: that is never cut, nor is what is short. The
    others share what is left.
    """
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    long = [number for number, width in enumerate(widths) if number and width > _SHORT]
    left = room - _BETWEEN * (len(widths) - 1)
    left -= sum(width for number, width in enumerate(widths) if number not in long)
    for place, number in enumerate(sorted(long, key=widths.__getitem__)):
        share = left // (len(long) - place)
        if share < _LEAST:
            return None
        widths[number] = min(widths[number], share)
        left -= widths[number]
    return widths if left >= 0 else None


def _coloured(name: str, text: str) -> Text:
    return Text(text, _COLOURS.get(text, "") if name in _TELLING else "")


def _ago(ms: int | None) -> str:
    if ms is None:
        return ""
    seconds = max(0, time.time_ns() // 1_000_000 - ms) // 1000
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def print_facts(facts: Mapping[str, object]) -> None:
    """Names and values, one pair in each line."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        if value not in (None, "", [], {}):
            shown = ("no", "yes")[value] if isinstance(value, bool) else visible(value)
            fact = Text.assemble((f"{name:<{width}}", "bold"), "  ", _coloured(name, shown))
            console.print(fact, soft_wrap=True)


def progress() -> Progress:
    """Bars for people who wait; nothing where nobody looks."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=_errors,
        transient=True,
        disable=not _errors.is_terminal,
    )


@contextmanager
def patience(text: str) -> Iterator[None]:
    """Something turns while it is not known how long it takes."""
    if not _errors.is_terminal:
        yield
        return
    with _errors.status(text):
        yield


def brief(value: object) -> str:
    """Content in one line."""
    text = to_json(value).decode()
    return text if len(text) <= 200 else text[:199] + "…"
