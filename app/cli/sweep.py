"""Commands that remove many things: they count, ask, and report what was done."""

from collections.abc import Callable

import typer

from holdfast.cli.failures import Exit
from holdfast.cli.options import confirm
from holdfast.cli.output import Json, answer, progress, spinner
from holdfast.cli.remote import Remote, Server


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

    async def conversation(remote: Remote) -> tuple[Json, bool]:
        with spinner("Counting"):
            plan = await remote.ask("POST", path, {**wanted, "dry_run": True})
        if dry_run or not plan["matched"]:
            return {**plan, "dry_run": dry_run}, False
        confirm(question(plan), yes=yes)
        removed, is_left = 0, True
        with progress() as bar:
            task = bar.add_task(doing, total=plan["matched"])
            while is_left:
                done = await remote.ask("POST", path, {**wanted, "dry_run": False})
                removed += done[counts]
                is_left = done[counts] < done["matched"]
                bar.update(task, completed=min(removed, plan["matched"]))
                if not done[counts]:
                    break
        return {**plan, counts: removed, "dry_run": False}, is_left

    done, is_left = server.talk(conversation)
    answer(done, (would if dry_run else did)(done), as_json=server.as_json)
    if not done["matched"] or is_left:
        raise typer.Exit(Exit.FAILED)
