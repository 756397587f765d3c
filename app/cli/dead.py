"""`holdfast dead`: look at dead letters, deliver them once more, remove them, take them along."""

import sys
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.progress import Progress

from app.cli.failures import Exit
from app.cli.lists import Most, print_list
from app.cli.options import (
    AsJson,
    Conditions,
    DryRun,
    Everything,
    Ids,
    Yes,
    conditions,
    confirm,
    gathers,
    id_of,
    place,
    wanted,
)
from app.cli.output import (
    Brief,
    Moment,
    brief,
    complain,
    note,
    patience,
    print_facts,
    print_json,
    print_table,
    progress,
    when,
)
from app.cli.remark import remark
from app.cli.remote import Json, Place, Remote, talk
from app.cli.replay import replay, replays
from app.delivery.error_codes import find

program = typer.Typer(
    help="Dead letters.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)
program.command("replay")(replay)
program.command("replays")(replays)
program.command("remark")(remark)


_GROUP_HEAD = ("FINGERPRINT", "COUNT", "RECEIVERS", "AGE", "CHANNEL", "CODE", "WHOSE", "REASON")
_GROUP = ("fingerprint", "count", "receivers", "last", "channel", "code", "remark", "reason")
_LETTER_HEAD = ("ID", "AGE", "CHANNEL", "RECEIVER", "STATE", "CODE", "REASON")
_LETTER = ("id", "died", "channel", "receiver", "state", "code", "reason")


@program.command("list")
@gathers(conditions, place)
def list_letters(
    *,
    conditions: Conditions,
    groups: Annotated[bool, typer.Option("--groups", help="By what went wrong.")] = False,
    limit: Most = None,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """List dead letters, or groups of them.

    Letters come the latest first, groups the largest first.
    """
    if groups and conditions.keys() - {"fingerprint"}:
        raise typer.BadParameter("groups are of all letters: only --fingerprint beside --groups")
    names = _GROUP if groups else _LETTER
    print_list(
        place,
        "/dead-letters/groups" if groups else "/dead-letters",
        conditions,
        limit=limit,
        as_json=as_json,
        head=_GROUP_HEAD if groups else _LETTER_HEAD,
        row=lambda item: [_cell(item, name) for name in names],
    )


def _cell(item: Json, name: str) -> object:
    match name:
        case "died" | "last":
            return Moment(item[name])
        case "reason":
            return _reason(item)
        case "remark":
            return item["remark"] and item["remark"]["assignee"]
        case _:
            return item[name]


def _reason(item: Json) -> Brief:
    """What the receiver said; what its code means is known by the code."""
    whole, code = str(item["reason"]), find(item["code"])
    meaning = "" if code is None else f"{code.meaning}: "
    return Brief(whole.removeprefix(meaning), whole)


@program.command("show")
@gathers(place)
def show_letter(
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="The letter.")],
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Show one dead letter with every attempt."""
    letter = talk(place, lambda remote: remote.get(f"/dead-letters/{id_of(id)}"))
    if as_json:
        print_json(letter)
        return
    facts = {name: value for name, value in letter.items() if name not in ("history", "data")}
    for name in ("published", "died", "expires"):
        facts[name] = when(letter[name])
    for name in ("properties", "policy"):
        facts[name] = letter[name] and brief(letter[name])
    print_facts({**facts, "data": brief(letter["data"])})
    head = ("N", "AGE", "NODE", "TRANSPORT", "OUTCOME", "MS", "CODE", "TEXT")
    names = ("n", "time", "node", "transport", "outcome", "latency_ms", "code", "text")
    rows = [[*(attempt[name] for name in names)] for attempt in letter["history"]]
    if rows:
        print_table(head, [[row[0], Moment(row[1]), *row[2:]] for row in rows])


@program.command("purge")
@gathers(conditions, place)
def purge(
    *,
    ids: Ids = None,
    conditions: Conditions,
    everything: Everything = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Remove dead letters for good."""
    letters = wanted(ids, conditions, everything=everything)

    async def conversation(remote: Remote) -> Json:
        with patience("Counting"):
            plan = await remote.post("/dead-letters/purge", {**letters, "dry_run": True})
        if dry_run or not plan["matched"]:
            return dict(plan)
        confirm(f"Remove {plan['matched']} dead letters for good?", yes=yes)
        with patience("Removing"):
            return dict(await remote.post("/dead-letters/purge", {**letters, "dry_run": False}))

    done = talk(place, conversation)
    if as_json:
        print_json(done, is_line=True)
    elif done["dry_run"] and done["matched"]:
        sys.stdout.write(f"{done['matched']} dead letters would be removed\n")
    else:
        sys.stdout.write(f"{done['purged']} dead letters removed\n")
    if not done["matched"]:
        raise typer.Exit(Exit.FAILED)


@program.command("export")
@gathers(conditions, place)
def export(
    *,
    conditions: Conditions,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; else standard output.")
    ] = None,
    place: Place,
) -> None:
    """Write whole dead letters as JSON lines."""
    part = output and output.with_name(output.name + ".part")
    try:
        # Only what is complete gets the name that was asked for.
        with part.open("wb") if part else nullcontext(sys.stdout.buffer) as file:
            count = talk(place, lambda remote: _export(remote, conditions, file))
            file.flush()
        if part and output:
            part.replace(output)
            note(f"{count} dead letters written to {output}")
    except BrokenPipeError:
        # Whoever read this has seen enough; the caller ends the program without a word.
        raise
    except OSError as error:
        complain(f"{error.filename or output}: {error.strerror}")
        raise typer.Exit(Exit.FAILED) from None
    finally:
        if part:
            part.unlink(missing_ok=True)


async def _export(remote: Remote, conditions: Conditions, file: IO[bytes]) -> int:
    count = 0
    with progress() as bar:
        task = bar.add_task("Exporting", total=None)
        async for line in remote.lines("/dead-letters/export", conditions):
            file.write(line + b"\n")
            count += 1
            bar.update(task, completed=count)
    return count


@program.command("import")
@gathers(place)
def import_letters(
    *,
    file: Annotated[
        typer.FileBinaryRead, typer.Argument(help="JSON lines of an export; - is standard input.")
    ],
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Keep dead letters that were exported.

    They may come from elsewhere; one that is here already is left as it is.
    """

    async def conversation(remote: Remote) -> Json:
        with progress() as bar:
            return dict(await remote.post_lines("/dead-letters/import", _lines(file, bar)))

    done = talk(place, conversation)
    if as_json:
        print_json(done, is_line=True)
    else:
        sys.stdout.write(
            f"{done['imported']} imported, {done['repeated']} were here already, "
            f"{done['refused']} refused\n"
        )
        for refusal in done["refusals"]:
            complain(f"line {refusal['line']}: {refusal['text']}")
    if done["refused"]:
        raise typer.Exit(Exit.FAILED)


async def _lines(file: IO[bytes], bar: Progress) -> AsyncIterator[bytes]:
    task = bar.add_task("Importing", total=None)
    for line in file:
        yield line
        bar.advance(task)
