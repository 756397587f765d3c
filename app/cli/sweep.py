"""Commands that remove many things: they count, ask, and report what was done."""

from collections.abc import Callable

import typer

from holdfast.cli.failures import Exit
from holdfast.cli.options import confirm
from holdfast.cli.output import Json, answer, progress, spinner
from holdfast.cli.remote import Server


def sweep(
    server: Server,
    path: str,
    wanted: Json,
    *,
    question: Callable[[Json], str],
    would: Callable[[Json], str],
    did: Callable[[Json], str],
    counts: str,
    doing: str,
    dry_run: bool,
    yes: bool,
) -> None:
    """Count the matching items at this path on the server; remove them after confirmation.

    The texts are made of the counts; `counts` names the count of removed things. A request
    may remove a part of them: the next one removes more. The program fails if nothing matched or
    something is left.
    """
    with spinner("Counting"):
        plan = server.ask("POST", path, {**wanted, "dry_run": True})
    matched, removed = plan["matched"], 0
    is_left = matched and not dry_run
    if is_left:
        confirm(question(plan), yes=yes)
        with progress() as bar:
            task = bar.add_task(doing, total=matched)
            while is_left:
                done = server.ask("POST", path, {**wanted, "dry_run": False})
                removed += done[counts]
                is_left = done[counts] < done["matched"]
                bar.update(task, completed=min(removed, matched))
                if not done[counts]:
                    break
    result = {**plan, counts: removed, "dry_run": dry_run}
    answer(result, (would if dry_run else did)(result), as_json=server.as_json)
    if not matched or is_left:
        raise typer.Exit(Exit.FAILED)
