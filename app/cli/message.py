"""`holdfast message`: shows where a message is, and what happened to it."""

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.failures import Exit
from holdfast.cli.journal_place import lake_place
from holdfast.cli.options import ToServer
from holdfast.cli.output import (
    Cell,
    Column,
    Json,
    age,
    complain,
    note,
    print_facts,
    print_items,
    print_json,
)
from holdfast.cli.program import Program
from holdfast.cli.spark import failing
from holdfast.cli.step_order import in_order
from holdfast.journal.schema import STEPS

program = Program()

_ID = re.compile("[a-z0-9-]{1,32}-[0-9]{19}")
_US_PER_S = 1_000_000
_NS_PER_MS = 1_000_000


def _time_of_day(item: Json) -> Cell:
    moment = datetime.fromtimestamp(item["at_us"] / _US_PER_S).astimezone()
    return Cell(moment.strftime("%H:%M:%S.%f"), moment.isoformat(" ", "microseconds"))


def _in_words(item: Json) -> Cell:
    return Cell(_WORDS.get(item["kind"], item["kind"]), item["kind"])


_TIME: Column = ("TIME", _time_of_day)
_WORDS = {step.kind: step.words for step in STEPS}
_KIND: Column = ("KIND", _in_words)
STEP_COLUMNS = (_TIME, _KIND, "receiver", "attempt", "code", "sender", "copies", "letter")
_QUEUES = ("receiver", "state", "held", "attempts", "redelivered", age("gone_since", "GONE"))
_LETTERS = ("id", "receiver", "state", "code")


@program.command()
def message(
    *,
    id: Annotated[
        str, typer.Argument(help="Id of the message, such as holdfast-1763000000000000000.")
    ],
    lake: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=lake_place,
            help="Tables of the pipeline, for steps that the journal no longer has.",
        ),
    ] = None,
    server: ToServer,
) -> None:
    """Show where a message is, and every step that the journal has of it.

    The exit code is 1 if nothing is known of the message.
    """
    if _ID.fullmatch(id) is None:
        raise typer.BadParameter(
            f"{id!r} is not the id of a message: write NAME-NUMBER, where the number has 19 digits"
        )
    path = f"/messages/{id}"
    found = part = server.get(path)
    while part["cursor"] is not None:
        part = server.get(path, {"cursor": part["cursor"]})
        found["steps"] += part["steps"]
    del found["cursor"]
    if lake is not None:
        _add_steps(found, id, lake)
    found["steps"] = in_order(found["steps"])
    is_known = found["published"] is not None or bool(found["steps"])
    if server.as_json:
        print_json(found)
    elif is_known:
        _show(found)
    if not is_known:
        why = "it never existed, or its events were removed"
        if not found["journal"]:
            why = "the journal is off"
        complain(f"nothing is known of {id}: {why}")
        if found["lakes"] and lake is None:
            complain(f"tables that may have it: {', '.join(found['lakes'])}; name one with --lake")
        raise typer.Exit(Exit.FAILED)


def _add_steps(found: Json, id: str, lake: Path) -> None:
    """Add the steps that the tables have; some are still in the journal, too.

    The tables know a message of an earlier release by the id that the user has.
    """
    from holdfast.pipeline.lake import Lake
    from holdfast.pipeline.trace import steps

    names = {each.rpartition("-")[0] for each in (id, found["id"])}
    ns = int(id.rpartition("-")[2])
    with failing():
        happened = steps(Lake(lake), sorted(names), ns)
    found["steps"] = happened + [step for step in found["steps"] if step not in happened]
    if happened and found["published"] is None:
        found["published"] = ns // _NS_PER_MS


def _show(found: Json) -> None:
    print_facts({name: found[name] for name in ("id", "published")}, times=("published",))
    for columns, name in ((_QUEUES, "queues"), (_LETTERS, "letters"), (STEP_COLUMNS, "steps")):
        if found[name]:
            print_items(columns, found[name], wraps=True)
    if found["is_cut"]:
        note("Not all queues and dead letters were searched")
    if not found["journal"]:
        note("The journal is off: the steps of messages are not recorded")
