"""Output of commands: tables for people, lines for programs, JSON for both.

What draws for people takes a quarter of a command's time to import: it is imported only where there
is a terminal.
"""

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import orjson

from holdfast.delivery.basics.json_text import is_harmless, to_json
from holdfast.units import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

Json = dict[str, Any]
Item = TypeVar("Item")

# Control characters that JSON does not escape and a terminal may interpret.
_OBEYED = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# The columns and facts whose words are coloured.
_TELLING = frozenset({"STATE", "ACTIVE", "state", "active"})
_COLOURS = {
    **dict.fromkeys(("ALIVE", "done", "replayed", "yes"), "green"),
    **dict.fromkeys(("POLLING", "held", "no", "new", "canary", "running", "cancelled"), "yellow"),
    **dict.fromkeys(("DEAD", "stopped", "failed"), "red"),
}
# Columns of up to `_SHORT` are shown in full; wider ones are narrowed, but not below `_LEAST`.
_SHORT = 12
_LEAST = 6
_BETWEEN = 2
# How often a command says without a terminal that it is at work.
_BETWEEN_LINES_S = 10.0
# A rate over less time says nothing.
_MEASURABLE_S = 0.01


def is_terminal() -> bool:
    """Return whether the output is for people."""
    return sys.stdout.isatty()


@cache
def console() -> "Console":
    """Return what draws on a terminal."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


@cache
def _errors() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def complain(text: str, head: str = "holdfast:") -> None:
    """Print an error to stderr."""
    if not sys.stderr.isatty():
        sys.stderr.write(f"{head} {visible(text)}\n")
        return
    from rich.text import Text

    _errors().print(Text.assemble((head, "bold red"), " ", visible(text)))


def note(text: str) -> None:
    """Print to stderr what is not part of the result."""
    sys.stderr.write(visible(text) + "\n")


def visible(value: object) -> str:
    """The text with everything escaped that is invisible, or that a terminal interprets."""
    text = "" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def when(ms: int | None) -> str:
    """Return a server time as local time."""
    if ms is None:
        return ""
    return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(" ", "seconds")


def print_json(value: object, *, is_line: bool = False) -> None:
    """Print JSON, on one line or indented."""
    if is_line:
        text = to_json(value).decode()
    elif is_harmless(value):
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    else:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    text = _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    sys.stdout.write(text + "\n")


def answer(value: object, text: str, *, as_json: bool) -> None:
    """Print what was done as one line of JSON, or as a sentence."""
    if as_json:
        print_json(value, is_line=True)
    else:
        sys.stdout.write(text + "\n")


class Cell(NamedTuple):
    """A cell or a head of a table: short for people, complete for programs."""

    short: object
    whole: object


def print_table(
    head: Sequence[object], rows: Iterable[Sequence[object]], *, wraps: bool = False
) -> None:
    """Print a table on a terminal; otherwise tab-separated lines without truncation.

    What does not fit into a column of the table is cut off, or `wraps`.
    """
    cells = [[_cell(each) for each in row] for row in (head, *rows)]
    names, *shown = [[visible(cell.short) for cell in row] for row in cells]
    if is_terminal():
        if not shown:
            console().print("None.", style="dim")
            return
        widths = _widths([names, *shown], console().width)
        if widths is not None:
            _draw(names, shown, widths, wraps=wraps)
            return
    for row in cells:
        sys.stdout.write("\t".join(visible(cell.whole) for cell in row) + "\n")


def _draw(
    names: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int], *, wraps: bool
) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for number, (name, width) in enumerate(zip(names, widths, strict=True)):
        if wraps or number == 0:
            table.add_column(name, overflow="fold", width=width)
        else:
            table.add_column(name, no_wrap=True, width=width)
    for texts in rows:
        table.add_row(*(_coloured(name, text) for name, text in zip(names, texts, strict=True)))
    console().print(table)


def print_rows(names: Sequence[str], rows: Iterable[Sequence[object]], *, as_json: bool) -> None:
    """Print rows as a table, or as lines of JSON with these names."""
    if not as_json:
        print_table([name.upper() for name in names], rows)
        return
    for row in rows:
        print_json(dict(zip(names, row, strict=True)), is_line=True)


def _cell(value: object) -> Cell:
    if isinstance(value, bool):
        value = _yes_or_no(value)
    return value if isinstance(value, Cell) else Cell(value, value)


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _widths(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Column widths that show all columns; None if there is not enough room.

    The first column names the row, so it is never cut: it wraps if it leaves no room for others.
    """
    from rich.cells import cell_len

    first, *others = (max(map(cell_len, column)) for column in zip(*rows, strict=True))
    narrow = min(first, max(_SHORT, room // 3))
    return _narrowed([first, *others], room) or _narrowed([narrow, *others], room)


def _narrowed(widths: Sequence[int], room: int) -> list[int] | None:
    """Return the widths with less for long columns, which share what the others leave."""
    shared = [*widths]
    long = [number for number, width in enumerate(widths) if number and width > _SHORT]
    left = room - _BETWEEN * (len(widths) - 1)
    left -= sum(width for number, width in enumerate(widths) if number not in long)
    for place, number in enumerate(sorted(long, key=widths.__getitem__)):
        share = left // (len(long) - place)
        if share < _LEAST:
            return None
        shared[number] = min(widths[number], share)
        left -= shared[number]
    return shared if left >= 0 else None


def _coloured(name: str, text: str) -> "Text":
    from rich.text import Text

    return Text(text, _COLOURS.get(text, "") if name in _TELLING else "")


def _ago(ms: int | None) -> str:
    if ms is None:
        return ""
    seconds = max(0, time.time_ns() // 1_000_000 - ms) // 1000
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


# Programs get the time itself, where people see how long ago it was.
AGE, FOR = Cell("AGE", "SINCE"), Cell("FOR", "SINCE")

Column = tuple[str | Cell, Callable[[Json], object]]
# A column is a field of the items, or has a heading and a function that makes its cells.
Columns = Sequence[str | Column]


def print_items(
    columns: Columns, items: Iterable[Json], *, as_json: bool = False, wraps: bool = False
) -> None:
    """Print items as a table, or as lines of JSON."""
    if as_json:
        for item in items:
            print_json(item, is_line=True)
        return
    whole = [(_head(each), itemgetter(each)) if isinstance(each, str) else each for each in columns]
    rows = [[cell(item) for _, cell in whole] for item in items]
    print_table([head for head, _ in whole], rows, wraps=wraps)


def age(name: str, head: str | Cell = AGE) -> Column:
    """A column that shows how long ago the time in a field was."""
    return head, lambda item: since(item[name])


def time_of(name: str) -> Column:
    """A column that shows the time in a field."""
    return _head(name), lambda item: when(item[name])


def _head(name: str) -> str:
    return name.upper().replace("_", " ")


def since(ms: int | None) -> Cell:
    """A time: how long ago it was, and exactly for programs."""
    return Cell(_ago(ms), when(ms))


def print_facts(
    facts: Mapping[str, object], times: Collection[str] = (), *, as_json: bool = False
) -> None:
    """Print names and values, one pair per line, or JSON; `times` names values that are times."""
    if as_json:
        print_json(facts)
        return
    width = max(map(len, facts), default=0)
    for name, given in facts.items():
        value = when(cast("int | None", given)) if name in times else given
        if value not in (None, "", [], {}):
            shown = _yes_or_no(value) if isinstance(value, bool) else visible(value)
            _print_fact(f"{name:<{width}}", name, shown)


def _print_fact(head: str, name: str, shown: str) -> None:
    if not is_terminal():
        sys.stdout.write(f"{head}  {shown}\n")
        return
    from rich.text import Text

    fact = Text.assemble((head, "bold"), "  ", _coloured(name, shown))
    console().print(fact, soft_wrap=True)


@dataclass(slots=True)
class _Task:
    description: str
    total: float | None = None
    completed: float = 0


class _Tasks:
    """Replaces a progress bar that would be invisible: it only knows how far the work is."""

    def __init__(self) -> None:
        self.tasks: list[_Task] = []

    def add_task(self, description: str, **numbers: Any) -> int:  # noqa: ANN401 - as rich takes it
        self.tasks.append(_Task(description, **numbers))
        return len(self.tasks) - 1

    def update(self, task: int, **changes: Any) -> None:  # noqa: ANN401 - as rich takes it
        for name, value in changes.items():
            if value is not None:
                setattr(self.tasks[task], name, value)

    def advance(self, task: int, advance: float = 1) -> None:
        self.tasks[task].completed += advance

    def track(self, items: Collection[Item], *, description: str) -> Iterator[Item]:
        task = self.add_task(description, total=len(items))
        for item in items:
            yield item
            self.advance(task)


@contextmanager
def progress(*, has_end: bool = True) -> Iterator["Progress"]:
    """Show a progress bar on a terminal; elsewhere a line now and then, if the work has an end."""
    if sys.stderr.isatty():
        with _progress_bar() as bar:
            yield bar
        return
    tasks = cast("Progress", _Tasks())
    with telling(lambda: _stages(tasks)) if has_end else nullcontext():
        yield tasks


def _progress_bar() -> "Progress":
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=_errors(),
        transient=True,
        # Lines for a pipe go there, whatever the terminal shows.
        redirect_stdout=is_terminal(),
    )


def _stages(bar: "Progress") -> str:
    done = (
        f"{task.description}, {task.completed:g}"
        + ("" if task.total is None else f" of {task.total:g}")
        for task in bar.tasks
    )
    return "; ".join(done)


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show a spinner while something takes an unknown time; without a terminal, lines."""
    begun = time.monotonic()
    with (
        _errors().status(text) if sys.stderr.isatty() else nullcontext(),
        telling(lambda: f"{text}, for {time.monotonic() - begun:.0f} s"),
    ):
        yield


@contextmanager
def telling(stage: Callable[[], str]) -> Iterator[None]:
    """Without a terminal, say to stderr every ten seconds how far the work has come."""
    if sys.stderr.isatty():
        yield
        return
    is_over = threading.Event()

    def tell() -> None:
        while not is_over.wait(_BETWEEN_LINES_S):
            if text := stage():
                note(text)

    # The work may be anything, such as a query that blocks this thread.
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_over.set()
        teller.join()


def speed(count: int, seconds: float) -> str:
    """Return a number of messages, with the time that they took and their rate if it is known."""
    text = counted(count, "message")
    if seconds < _MEASURABLE_S:
        return text
    return f"{text} in {seconds:.2f} s, {count / seconds:,.0f} per second"


def brief(value: object) -> str:
    """Content on one line."""
    text = to_json(value).decode()
    return text if len(text) <= 200 else text[:199] + "…"
