"""`holdfast top`: shows a server at work."""

import asyncio
from contextlib import nullcontext
from typing import Annotated, NamedTuple

import typer
from rich import box
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli.options import ToServer
from holdfast.cli.output import Json, console, note, print_facts, print_json, visible, when
from holdfast.cli.program import Program
from holdfast.cli.remote import Remote

program = Program()

_MS_PER_S = 1000


class Figure(NamedTuple):
    """A row: a figure, whether it is a rising count, and whether any value but zero is a fault."""

    name: str
    is_count: bool = False
    alarms: bool = False


_FIGURES = (
    Figure("published", is_count=True),
    Figure("accepted", is_count=True),
    Figure("acked", is_count=True),
    Figure("dead", is_count=True),
    Figure("redelivered", is_count=True),
    Figure("expired", is_count=True),
    Figure("discarded", is_count=True),
    Figure("waiting"),
    Figure("handed"),
    Figure("oldest_ms"),
    Figure("unaccounted", alarms=True),
    Figure("sessions"),
    Figure("connected"),
    Figure("polling"),
    Figure("held_back"),
    Figure("channels"),
    Figure("channels_held_back"),
    Figure("letters"),
    Figure("letters_lately", alarms=True),
)


@program.command()
def top(
    *,
    once: Annotated[bool, typer.Option(help="Show one reading, then end.")] = False,
    every: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="Time between readings.")
    ] = 2.0,
    server: ToServer,
) -> None:
    """Show a server at work: messages, queues, sessions and dead letters, until Ctrl-C.

    Without a terminal, and with --json, each reading is one line of JSON. Rates are per second,
    since the previous reading.
    """

    async def show_once(remote: Remote) -> None:
        found = await remote.get("/figures")
        if server.as_json:
            print_json(found, is_line=True)
        else:
            print_facts(found, times=("time", "started", "letters_oldest"))

    async def watch(remote: Remote) -> None:
        before = None
        has_screen = console.is_terminal and not server.as_json
        with Live(console=console, auto_refresh=False) if has_screen else nullcontext() as live:
            while True:
                found = await remote.get("/figures")
                if live is None:
                    print_json(found, is_line=True)
                else:
                    live.update(table_of(found, before), refresh=True)
                before = found
                await asyncio.sleep(every)

    try:
        server.talk(show_once if once else watch)
    except KeyboardInterrupt:
        note("")


def table_of(found: Json, before: Json | None) -> Table:
    """Return a reading as a table, with rates since the one before."""
    title = f"{found['node']} {found['version']}, {when(found['time'])}"
    table = Table("FIGURE", "TOTAL", "PER SECOND", title=visible(title), box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for figure in _FIGURES:
        value = found[figure.name]
        style = "red" if figure.alarms and value else ""
        table.add_row(
            figure.name.replace("_", " "),
            Text("" if value is None else str(value), style),
            _rate(figure, found, before),
        )
    if not found["store_available"]:
        table.caption = Text("the store is unavailable", "red")
    return table


def _rate(figure: Figure, found: Json, before: Json | None) -> str:
    """Return how much a count grew per second; nothing if the server was restarted meanwhile."""
    if not figure.is_count or before is None or before["started"] != found["started"]:
        return ""
    passed_s = (found["time"] - before["time"]) / _MS_PER_S
    return "" if passed_s <= 0 else f"{(found[figure.name] - before[figure.name]) / passed_s:.1f}"
