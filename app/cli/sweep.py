"""Commands that remove many things: they count, ask, and report what was done."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import typer

from holdfast.cli.failures import Exit
from holdfast.cli.options import confirm
from holdfast.cli.output import Json, answer, spinner
from holdfast.cli.remote import Remote, Server


def sweep(
    server: Server,
    path: str,
    wanted: Mapping[str, Any],
    *,
    question: str,
    would: str,
    did: str,
    counts: str,
    carry_out: Callable[[Remote, Json], Awaitable[Json]],
    dry_run: bool,
    yes: bool,
) -> None:
    """Count the matching items at this path on the server; remove them after confirmation.

    The texts are formatted with the counts; `counts` names the count of removed things. The
    program fails if nothing matched or something is left.
    """

    async def conversation(remote: Remote) -> Json:
        with spinner("Counting"):
            plan = await remote.ask("POST", path, {**wanted, "dry_run": True})
        if dry_run or not plan["matched"]:
            return plan
        confirm(question.format_map(plan), yes=yes)
        return {**plan, **await carry_out(remote, plan), "dry_run": False}

    done = server.talk(conversation)
    is_plan = done["dry_run"] and done["matched"]
    answer(done, (would if is_plan else did).format_map(done), as_json=server.as_json)
    if not done["matched"] or (not done["dry_run"] and done[counts] < done["matched"]):
        raise typer.Exit(Exit.FAILED)
