"""`holdfast dead`: lists, shows, replays, purges, exports and imports dead letters."""

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from operator import itemgetter
from pathlib import Path
from typing import IO, Annotated, Literal

import typer

from holdfast.cli.failures import Exit, failed
from holdfast.cli.letter_options import Everything, Ids, LetterConditions, id_of, wanted
from holdfast.cli.lists import Range, print_list
from holdfast.cli.options import AtAddress, Conditions, DryRun, ToServer, Yes
from holdfast.cli.output import (
    Cell,
    Column,
    Json,
    age,
    answer,
    brief,
    complain,
    note,
    print_facts,
    print_items,
    print_json,
    progress,
)
from holdfast.cli.program import WithWait, group_of_commands
from holdfast.cli.remote import Server
from holdfast.cli.replay import replay, replays
from holdfast.cli.sweep import sweep
from holdfast.delivery.basics.error_codes import said_of
from holdfast.units import counted

program = group_of_commands()
program.command("replay", cls=WithWait)(replay)
program.command("replays")(replays)


def _reason(item: Json) -> Cell:
    """Return the receiver's text; the code explains itself."""
    whole = str(item["reason"])
    return Cell(said_of(item["code"], whole) or whole, whole)


_BY_CAUSE = "/dead-letters/groups"
_REASON = ("REASON", _reason)
_WHOSE: Column = ("WHOSE", lambda group: group["remark"] and group["remark"]["assignee"])
_MS = ("MS", itemgetter("latency_ms"))
_GROUPS = ("fingerprint", "count", "receivers", age("last"), "channel", "code", _WHOSE, _REASON)
_KINDS = ("count", "receivers", age("last"), "channel", "code", _REASON)
Grouping = Literal["cause", "code", "pattern"]
_LETTERS = ("id", age("died"), "channel", "receiver", "state", "code", _REASON)
_ATTEMPTS = ("n", age("time"), "node", "transport", "outcome", _MS, "code", "text")


@program.command("remark")
def remark(
    *,
    fingerprint: Annotated[
        str, typer.Argument(help="Fingerprint of the group; see dead list --groups.")
    ],
    assignee: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who takes care of the group.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="What is known about it.")] = None,
    server: ToServer,
) -> None:
    """Show or change the remark on a group of dead letters.

    Options that are not given change nothing; an empty text removes a value.
    """
    if not (fingerprint.isascii() and fingerprint.isalnum()):
        raise typer.BadParameter(f"{fingerprint!r} is not a fingerprint: see dead list --groups")
    given = {"assignee": assignee, "note": note}
    changed = {name: text for name, text in given.items() if text is not None}

    groups = server.get(_BY_CAUSE, {"fingerprint": fingerprint})["items"]
    remark = (groups[0]["remark"] if groups else None) or {"assignee": "", "note": ""}
    if changed or not groups:
        wanted = {name: remark[name] for name in given} | changed
        remark = server.ask("PUT", f"{_BY_CAUSE}/{fingerprint}/remark", wanted)
    text = f"{remark['assignee'] or 'nobody'}: {remark['note'] or 'no note'}"
    answer(remark, text, as_json=server.as_json)


@program.command("list")
def list_letters(
    *,
    conditions: LetterConditions,
    groups: Annotated[bool, typer.Option(help="Group letters by cause.")] = False,
    by: Annotated[
        Grouping,
        typer.Option(
            help="Of groups: by channel and code, by the code alone, or by code and channel "
            "pattern, in which a * stands for parts with digits."
        ),
    ] = "cause",
    shown: Range,
    server: ToServer,
) -> None:
    """List dead letters, or groups of them.

    Letters are listed newest first, groups largest first.

    Example: holdfast dead list --code user.update.error --since 1h
    """
    if groups and conditions.keys() - {"fingerprint"}:
        raise typer.BadParameter(
            "groups include all letters: only --fingerprint can be combined with --groups"
        )
    if by != "cause" and (conditions or not groups):
        raise typer.BadParameter(f"--by {by} needs --groups, and goes with no other condition")
    if groups:
        # Earlier releases group by cause alone.
        asked, columns = (conditions, _GROUPS) if by == "cause" else ({"by": by}, _KINDS)
        print_list(server, _BY_CAUSE, asked, columns, shown)
    else:
        print_list(server, "/dead-letters", conditions, _LETTERS, shown)


@program.command("show")
def show_letter(
    *,
    id: Annotated[str, typer.Argument(help="Id of the letter.")],
    server: ToServer,
) -> None:
    """Show one dead letter with every attempt."""
    letter = server.get(f"/dead-letters/{id_of(id)}")
    if server.as_json:
        print_json(letter)
        return
    history, data = letter.pop("history"), letter.pop("data")
    for name in ("properties", "policy"):
        letter[name] = letter[name] and brief(letter[name])
    print_facts({**letter, "data": brief(data)}, times=("published", "died", "expires"))
    if history:
        print_items(_ATTEMPTS, history, wraps=True)


@program.command("purge")
def purge(
    *,
    ids: Ids = None,
    conditions: LetterConditions,
    everything: Everything = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    server: ToServer,
) -> None:
    """Remove dead letters for good.

    Example: holdfast dead purge --channel /orders --until 7d --dry-run
    """
    sweep(
        server,
        "/dead-letters/purge",
        wanted(ids, conditions, everything=everything),
        question=lambda plan: f"Remove {counted(plan['matched'], 'dead letter')} for good?",
        would=lambda plan: f"{counted(plan['matched'], 'dead letter')} would be removed",
        did=lambda done: f"{counted(done['purged'], 'dead letter')} removed",
        counts="purged",
        doing="Removing",
        dry_run=dry_run,
        yes=yes,
    )


@program.command("export")
def export(
    *,
    conditions: LetterConditions,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file; default: standard output.")
    ] = None,
    server: AtAddress,
) -> None:
    """Export complete dead letters as JSON lines.

    Example: holdfast dead export --since 1d --output letters.ndjson
    """
    part = output and output.with_name(output.name + ".part")
    try:
        # The file gets its name only when it is complete.
        with part.open("wb") if part else nullcontext(sys.stdout.buffer) as file:
            count = _export(server, conditions, file)
            file.flush()
        if part and output:
            part.replace(output)
            note(f"{counted(count, 'dead letter')} written to {output}")
    except BrokenPipeError:
        # The reader of the pipe has closed it; the caller ends the program silently.
        raise
    except OSError as error:
        raise failed(f"{output or 'standard output'}: {error.strerror}") from None
    finally:
        if part:
            part.unlink(missing_ok=True)


def _export(server: Server, conditions: Conditions, file: IO[bytes]) -> int:
    count = 0
    with progress() as bar:
        task = bar.add_task("Exporting", total=None)
        for line in server.lines("/dead-letters/export", conditions):
            file.write(line + b"\n")
            count += 1
            bar.update(task, completed=count)
    return count


@program.command("import")
def import_letters(
    *,
    file: Annotated[
        typer.FileBinaryRead, typer.Argument(help="Exported JSON lines; - is standard input.")
    ],
    server: ToServer,
) -> None:
    """Import dead letters from an export.

    The export may be another server's. Existing letters are left as they are.
    """

    with progress() as bar:
        task = bar.add_task("Importing", total=None)
        lines = _counted(file, lambda: bar.advance(task))
        done = server.ask("POST", "/dead-letters/import", lines)
    counts = "{imported} imported, {repeated} already existed, {refused} refused"
    answer(done, counts.format_map(done), as_json=server.as_json)
    for refusal in [] if server.as_json else done["refusals"]:
        complain(f"line {refusal['line']}: {refusal['text']}")
    if done["refused"]:
        raise typer.Exit(Exit.FAILED)


def _counted(file: IO[bytes], count: Callable[[], None]) -> Iterator[bytes]:
    for line in file:
        yield line
        count()
