"""`holdfast now`: says once what is stuck, since when, and for whom."""

import sys
from operator import itemgetter
from typing import Annotated

import typer

from holdfast.cli.holds import hold_text
from holdfast.cli.options import ToServer
from holdfast.cli.output import (
    FOR,
    Columns,
    Json,
    age,
    print_facts,
    print_items,
    print_json,
    visible,
)
from holdfast.cli.program import Program
from holdfast.units import counted

program = Program()

_SIZES = ("waiting", "in_flight", "bytes")
_OLDEST = (age("oldest", "OLDEST"), "oldest_id")
# The lists in the order of their urgency: title, columns.
_LISTS: dict[str, tuple[str, Columns]] = {
    "held_back": (
        "Sessions that are held back",
        ("receiver", *_SIZES, *_OLDEST, ("HOLD", lambda each: hold_text(each["hold"]))),
    ),
    "held_channels": (
        "Channels that are held back",
        ("channel", age("since", FOR), "who", "reason", "attempts"),
    ),
    "unreachable": (
        "Sessions that are POLLING or DEAD",
        ("receiver", "state", age("since", FOR), *_SIZES, *_OLDEST),
    ),
    "oldest_receivers": (
        "Receivers with the oldest entries",
        ("receiver", "state", *_SIZES, *_OLDEST),
    ),
    "receivers": ("Receivers with the most entries", ("receiver", "state", *_SIZES, *_OLDEST)),
    "channels": (
        "Channels with the most entries",
        ("channel", "waiting", "in_flight", "receivers", "held"),
    ),
    "work_queues": (
        "Work queues",
        (
            "channel",
            "waiting",
            "unassigned",
            age("oldest", "OLDEST"),
            "in_work",
            age("since", FOR),
            "receivers",
        ),
    ),
}
_ALERTS: Columns = ("alert", age("since", FOR), "reason", ("WHAT TO DO", itemgetter("next")))
_WORKERS: Columns = (
    "channel",
    "receiver",
    "waiting",
    age("oldest", "OLDEST"),
    "in_work",
    age("since", FOR),
)


@program.command()
def now(
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100, help="Maximum number in each list.")
    ] = 10,
    server: ToServer,
) -> None:
    """Show what is stuck now, since when, and for whom.

    Begins with the most important in one sentence. Ends with 0 whatever it finds.
    """
    found = server.get("/now", {"limit": limit})
    if server.as_json:
        print_json(found)
        return
    sys.stdout.write(visible(found["sentence"]) + "\n\n")
    print_facts({name: found[name] for name in ("store", "waiting", "in_flight")})
    _print_list("Alerts", _ALERTS, found["alerts"], 0)
    for name, (title, columns) in _LISTS.items():
        _print_list(title, columns, found[name]["items"], found[name]["more"])
    for queue in found["work_queues"]["items"]:
        workers = queue["workers"]
        items = [{**each, "channel": queue["channel"]} for each in workers["items"]]
        _print_list(f"Workers of {queue['channel']}", _WORKERS, items, workers["more"])
    _print_letters(found["letters"])


def _print_list(title: str, columns: Columns, items: list[Json], more: int) -> None:
    if items:
        sys.stdout.write(f"\n{visible(title)}\n")
        print_items(columns, items)
        _print_more(f"{more:,} more" if more else "")


def _print_letters(letters: Json | None) -> None:
    if letters is None or not letters["total"]:
        return
    sys.stdout.write("\nDead letters of the last hour\n")
    print_items(("code", "letters"), letters["codes"])
    others = letters["total"] - sum(each["letters"] for each in letters["codes"])
    _print_more(f"{counted(others, 'letter')} with other codes" if others > 0 else "")


def _print_more(text: str) -> None:
    if text:
        sys.stdout.write(f"and {text}\n")
