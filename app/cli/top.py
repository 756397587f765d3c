"""`holdfast top`: shows a server at work."""

import asyncio
from contextlib import nullcontext
from typing import Annotated

import typer
from rich import box
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli.options import ToServer
from holdfast.cli.output import (
    Json,
    console,
    is_terminal,
    note,
    print_json,
    visible,
    when,
)
from holdfast.cli.program import Program
from holdfast.cli.remote import Remote

program = Program()

_MS_PER_S = 1000


# Rising counts, which are shown with their rates, and present values.
_COUNTS = ("published", "accepted", "acked", "dead", "redelivered", "expired", "discarded", "moved")
_VALUES = (
    "waiting", "in_flight", "oldest_ms", "unaccounted", "sessions", "connected", "polling",
    "held_back", "channels", "channels_held_back", "letters", "letters_lately", "alerts",
)  # fmt: skip
# Any value but zero is a fault.
_FAULTS = frozenset({"unaccounted", "letters_lately", "alerts"})


@program.command()
def top(
    *,
    every: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="Time between readings.")
    ] = 2.0,
    server: ToServer,
) -> None:
    """Show a server at work: messages, queues, sessions and dead letters, until Ctrl-C.

    Without a terminal, and with --json, each reading is one line of JSON. Rates are per second,
    since the previous reading. holdfast now answers once.
    """

    async def watch(remote: Remote) -> None:
        before = None
        has_screen = is_terminal() and not server.as_json
        with Live(console=console(), auto_refresh=False) if has_screen else nullcontext() as live:
            while True:
                found = await remote.get("/figures")
                if live is None:
                    print_json(found, is_line=True)
                else:
                    live.update(table_of(found, before), refresh=True)
                before = found
                await asyncio.sleep(every)

    try:
        server.talk(watch)
    except KeyboardInterrupt:
        note("")


def table_of(found: Json, before: Json | None) -> Table:
    """Return a reading as a table, with rates since the one before."""
    title = f"{found['node']} {found['version']}, {when(found['time'])}"
    table = Table("FIGURE", "TOTAL", "PER SECOND", title=visible(title), box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in _COUNTS + _VALUES:
        value = found[name]
        style = "red" if name in _FAULTS and value else ""
        shown = Text("" if value is None else str(value), style)
        rate = _rate(name, found, before) if name in _COUNTS else ""
        table.add_row(name.replace("_", " "), shown, rate)
    if not found["store_available"]:
        table.caption = Text("the store is unavailable", "red")
    elif missing := _missing(found):
        table.caption = Text(f"without shard {', '.join(map(str, missing))}", "red")
    return table


def _missing(found: Json) -> list[int]:
    """Return the shards that are not in a reading of several."""
    return [each["shard"] for each in found.get("unanswered", ())]


def _rate(name: str, found: Json, before: Json | None) -> str:
    """Return how much a count grew per second; nothing if that is unknown.

    A server, or one of several workers, may have been restarted meanwhile, or be missing.
    """
    if before is None or before["started"] != found["started"]:
        return ""
    if found[name] < before[name] or _missing(found) != _missing(before):
        return ""
    passed_s = (found["time"] - before["time"]) / _MS_PER_S
    return "" if passed_s <= 0 else f"{(found[name] - before[name]) / passed_s:.1f}"
