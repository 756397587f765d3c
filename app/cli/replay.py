"""`holdfast dead replay`: deliver dead letters once more, and watch how that goes."""

import asyncio
import sys
from typing import Annotated

import typer

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
from app.cli.output import complain, note, print_json, progress
from app.cli.remote import Exit, Json, Place, Remote, talk

_POLL_S = 0.5
_OVER = frozenset(["done", "stopped", "cancelled", "failed"])


@gathers(conditions, place)
def replay(
    *,
    ids: Ids = None,
    conditions: Conditions,
    everything: Everything = False,
    rate: Annotated[int, typer.Option("--rate", min=1, help="Letters per second.")] = 50,
    canary: Annotated[
        int, typer.Option("--canary", min=0, help="So many go first and must be settled.")
    ] = 10,
    stop_at: Annotated[
        float, typer.Option("--stop-at", help="Stop when more than this part died again.")
    ] = 0.1,
    max_replays: Annotated[
        int, typer.Option("--max-replays", min=1, help="Leave out what was replayed so often.")
    ] = 3,
    dry_run: DryRun = False,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for the end.")] = False,
    watch: Annotated[
        str | None, typer.Option("--watch", help="Wait for the end of this replay instead.")
    ] = None,
    cancel: Annotated[str | None, typer.Option("--cancel", help="End this replay instead.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Deliver dead letters once more, after saying how many that would be."""
    if watch is not None or cancel is not None:
        known = id_of(watch or cancel or "")
        job = talk(
            place,
            lambda remote: remote.delete(f"/replays/{known}") if cancel else _watch(remote, known),
        )
    else:
        options = {
            "rate": rate, "canary": canary, "stop_at": stop_at, "max_replays": max_replays,
        }  # fmt: skip
        letters = wanted(ids, conditions, everything=everything) | {"options": options}

        async def conversation(remote: Remote) -> Json:
            plan = await remote.post("/replays", {**letters, "dry_run": True})
            if dry_run or not plan["total"]:
                return dict(plan)
            if not as_json:
                note(_plan(plan))
            confirm(f"Deliver {plan['total'] - plan['skipped']} dead letters again?", yes=yes)
            job = await remote.post("/replays", {**letters, "dry_run": False})
            return dict(job) if detach else await _watch(remote, str(job["id"]))

        job = talk(place, conversation)
    _report(job, as_json=as_json)


def _report(job: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(job, is_line=True)
    elif job["state"] == "planned":
        sys.stdout.write(_plan(job) + "\n")
    else:
        told = f"Replay {job['id']} is {job['state']}: {job['sent']} of {job['total']} sent"
        told += f", {job['acked']} acked, {job['failed']} died again, {job['skipped']} left out"
        sys.stdout.write(told + "\n")
        if job["reason"]:
            complain(str(job["reason"]))
    if not job["total"] or job["state"] in ("stopped", "failed"):
        raise typer.Exit(Exit.FAILED)


def _plan(plan: Json) -> str:
    parts = [f"{plan['total']} dead letters match, {plan['skipped']} of them would be left out"]
    for name in ("channels", "receivers"):
        counts = ", ".join(f"{key} {count}" for key, count in plan[name].items())
        parts.append(f"{name}: {counts or 'none'}")
    return "; ".join(parts)


async def _watch(remote: Remote, id: str) -> Json:
    """Wait for the end of a replay; whoever interrupts that ends the replay."""
    try:
        with progress("Replaying") as bar:
            task = bar.add_task("")
            while True:
                job = await remote.get(f"/replays/{id}")
                bar.update(task, total=job["total"], completed=job["sent"] + job["skipped"])
                if job["state"] in _OVER:
                    return dict(job)
                await asyncio.sleep(_POLL_S)
    except asyncio.CancelledError:
        await remote.delete(f"/replays/{id}")
        note(f"Replay {id} is cancelled; what was sent stays sent")
        raise
