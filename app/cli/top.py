"""`holdfast top`: shows a server at work."""

from contextlib import nullcontext, suppress
from time import sleep
from typing import Annotated

import typer
from rich import box
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli.lists import Field, range_of
from holdfast.cli.moments import moment
from holdfast.cli.options import ToServer
from holdfast.cli.output import (
    Json,
    console,
    is_terminal,
    note,
    print_json,
    since,
    visible,
    when,
)
from holdfast.cli.past import Asked, show
from holdfast.cli.program import Program
from holdfast.cli.remote import Server
from holdfast.delivery.basics.ranking import RankingKind

program = Program()

_MS_PER_S = 1000


# Rising counts, which are shown with their rates, and present values.
_COUNTS = ("published", "accepted", "acked", "dead", "redelivered", "expired", "discarded", "moved")
_VALUES = (
    "waiting", "in_flight", "oldest_ms", "unaccounted", "sessions", "connected", "polling",
    "held_back", "channels", "channels_held_back", "letters", "letters_lately", "alerts",
)  # fmt: skip
# Of each of several workers.
_OF_SHARD = (
    "shard", "host", "state", "since", "restarts", "sessions", "store", "links", "behind_ms",
)  # fmt: skip
# Any value but zero is a fault.
_FAULTS = frozenset({"unaccounted", "letters_lately", "alerts"})


@program.command()
def top(
    *,
    every: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="Time between readings.")
    ] = 2.0,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Show the past, from this on: yesterday, or 2h."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="The end of that past; default: now.")
    ] = None,
    by: Annotated[
        RankingKind | None, typer.Option(help="Of the past, show only who comes first in this.")
    ] = None,
    shard: Annotated[
        int | None, typer.Option(min=0, help="Of the past, only what this worker did.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, max=64, help="Maximum number of names.")
    ] = None,
    sort: Field = None,
    server: ToServer,
) -> None:
    """Show a server at work: messages, queues, sessions and dead letters, until Ctrl-C.

    Without a terminal, and with --json, each reading is one line of JSON. Rates are per second,
    since the previous reading. holdfast now answers once.

    With --since, show instead what happened since then, by minute for a day and by hour for a
    month: rates, lengths, times, and who publishes and gets most.

    Example: holdfast top --since yesterday --by senders
    """
    if since is not None or until is not None or by is not None:
        begin, end = moment(since, ago=True), moment(until, ago=True)
        asked = Asked(begin, end, shard, by)
        show(server, asked, range_of(limit, sort))
        return
    before = None
    has_screen = is_terminal() and not server.as_json
    live = Live(console=console(), auto_refresh=False) if has_screen else nullcontext()
    with suppress(KeyboardInterrupt), live as screen:
        while True:
            found = _reading(server)
            if screen is None:
                print_json(found, is_line=True)
            else:
                screen.update(shown(found, before), refresh=True)
            before = found
            sleep(every)
    note("")


def _reading(server: Server) -> Json:
    """Return the figures and, if there are several workers, a row for each."""
    found = server.get("/figures")
    shards = server.get("/shards")["items"]
    return {**found, "shards": shards} if len(shards) > 1 else found


def shown(found: Json, before: Json | None) -> Group:
    """Return a reading as tables, with rates since the one before."""
    figures = _figures(found, before)
    # A terminal may have no room for all figures.
    return Group(_shards(found["shards"]), figures) if "shards" in found else Group(figures)


def _shards(shards: list[Json]) -> Table:
    """Return the row of each worker. What only it knows is missing while it does not answer."""
    # One machine needs no column for it.
    names = [each for each in _OF_SHARD if each != "host" or any(it["host"] for it in shards)]
    heads = ["FOR" if name == "since" else name.upper().replace("_", " ") for name in names]
    table = Table(*heads, box=box.SIMPLE_HEAD)
    for name, column in zip(names, table.columns, strict=True):
        if name not in ("host", "state", "store"):
            column.justify = "right"
    for each in shards:
        is_well = each["state"] == "serving" and each["store"] == "available"
        values = ({**each, "since": since(each["since"]).short}[name] for name in names)
        table.add_row(
            *("" if value is None else visible(value) for value in values),
            style="" if is_well else "red",
        )
    return table


def _figures(found: Json, before: Json | None) -> Table:
    title = f"{found['node']} {found['version']}, {when(found['time'])}"
    table = Table("FIGURE", "TOTAL", "PER SECOND", title=visible(title), box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in _COUNTS + _VALUES:
        value = found[name]
        style = "red" if name in _FAULTS and value else ""
        text = Text("" if value is None else str(value), style)
        rate = _rate(name, found, before) if name in _COUNTS else ""
        table.add_row(name.replace("_", " "), text, rate)
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
