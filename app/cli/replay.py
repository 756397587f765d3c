"""`holdfast dead replay`: deliver dead letters once more, and watch how that goes."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated

import orjson
import typer

from app.cli.failures import Exit
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
    place,
    replay_of,
    wanted,
)
from app.cli.output import Moment, complain, note, patience, print_json, print_table, progress
from app.cli.remote import Json, Place, Remote, talk

_POLL_S = 0.5
_OVER = frozenset(["done", "stopped", "cancelled", "failed"])
# Why letters are left out.
_WHY = {
    "receiver": "whose receiver is not there",
    "replayed": "replayed already",
    "generation": "replayed too often",
    "waiting": "waiting already",
    "repeated": "of a message that goes once",
    "gone": "gone meanwhile",
}


def options(
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
    to: Annotated[
        str | None, typer.Option("--to", metavar="SESSION", help="All to joe/2, not to their own.")
    ] = None,
) -> Json:
    """How the letters are to go, as the server takes it."""
    return {
        "rate": rate,
        "canary": canary,
        "stop_at": stop_at,
        "max_replays": max_replays,
        "to": to and to.removeprefix("client/"),
    }


@gathers(conditions, options, place)
def replay(
    *,
    ids: Ids = None,
    conditions: Conditions,
    everything: Everything = False,
    options: Json,
    dry_run: DryRun = False,
    detach: Annotated[bool, typer.Option("--detach", help="Do not wait for the end.")] = False,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="JSON", help="What the one letter says instead."),
    ] = None,
    watch: Annotated[
        str | None, typer.Option("--watch", help="Wait for the end of this replay instead.")
    ] = None,
    cancel: Annotated[str | None, typer.Option("--cancel", help="End this replay instead.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Deliver dead letters once more.

    Says first how many that would be, and asks. Ctrl-C ends a replay that is watched.
    With --data one letter goes out as a new message, and is kept as it is.
    """
    if watch is None and cancel is None:
        if data is not None:
            options["edit"] = {"data": _edited(data, ids)}
        letters = wanted(ids, conditions, everything=everything) | {"options": options}
        begin = partial(_begin, letters=letters, detach=detach, yes=yes, is_quiet=as_json)
        job = talk(place, partial(_plan, letters=letters) if dry_run else begin)
    else:
        job = talk(place, _known(watch, cancel))
    report(job, as_json=as_json)


def _edited(data: str, ids: list[str] | None) -> object:
    """What the letter says instead."""
    if len(ids or ()) != 1:
        raise typer.BadParameter("one letter is edited at a time: name its id beside --data")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"--data is no JSON: {error}") from None


async def _plan(remote: Remote, letters: Json) -> Json:
    with patience("Counting"):
        return await remote.post("/replays", {**letters, "dry_run": True})


async def _begin(remote: Remote, letters: Json, *, detach: bool, yes: bool, is_quiet: bool) -> Json:
    """Replay, if there is anything and whoever sits there wants it."""
    plan = await _plan(remote, letters)
    left = plan["total"] - plan["skipped"]
    if not left:
        return plan
    if not is_quiet:
        note(_told(plan))
    to = letters["options"]["to"]
    whom = f" to {to}" if to else ""
    confirm(f"Deliver {left} dead letters again{whom}?", yes=yes)
    job = await remote.post("/replays", {**letters, "dry_run": False})
    if detach:
        return job
    if not is_quiet:
        note(f"Replay {job['id']} has begun; Ctrl-C ends it")
    return await watch_job(remote, str(job["id"]))


def _known(watch: str | None, cancel: str | None) -> Callable[[Remote], Awaitable[Json]]:
    """What is wanted of a replay that has begun."""
    if watch is not None and cancel is not None:
        raise typer.BadParameter("a replay is watched or ended: --watch or --cancel")
    id = replay_of(watch or cancel or "")
    if cancel is not None:
        return lambda remote: remote.delete(f"/replays/{id}")
    return lambda remote: watch_job(remote, id)


@gathers(place)
def replays(*, as_json: AsJson = False, place: Place) -> None:
    """List replays, the latest first."""
    found = talk(place, lambda remote: remote.get("/replays"))["items"]
    if as_json:
        for job in found:
            print_json(job, is_line=True)
        return
    head = ("ID", "STATE", "AGE", "WHO", "TOTAL", "SENT", "ACKED", "DIED", "LEFT OUT", "REASON")
    names = ("who", "total", "sent", "acked", "failed", "skipped", "reason")
    rows = [
        [job["id"], job["state"], Moment(job["started"]), *(job[name] for name in names)]
        for job in found
    ]
    print_table(head, rows)


def report(job: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(job, is_line=True)
    elif job["state"] == "planned":
        sys.stdout.write(_told(job) + "\n")
    else:
        told = f"Replay {job['id']} is {job['state']}: {job['sent']} of {job['total']} sent"
        told += f", {job['acked']} acked, {job['failed']} died again, {job['skipped']} left out"
        told += _why(job)
        sys.stdout.write(told + "\n")
        if job["reason"]:
            complain(str(job["reason"]))
    # One that has just begun has counted nothing yet.
    is_idle = job["state"] in ("planned", "done") and job["total"] == job["skipped"]
    if is_idle or job["state"] in ("stopped", "failed"):
        raise typer.Exit(Exit.FAILED)


def _told(plan: Json) -> str:
    matching = f"{plan['total']} dead letters match, {plan['skipped']} of them would be left out"
    parts = [matching + _why(plan)]
    for name in ("channels", "receivers"):
        counts = ", ".join(f"{key} {count}" for key, count in plan[name].items())
        parts.append(f"{name}: {counts or 'none'}")
    return "; ".join(parts)


def _why(job: Json) -> str:
    reasons = [f"{count} {_WHY.get(why, why)}" for why, count in job["skips"].items()]
    return f" ({', '.join(reasons)})" if reasons else ""


async def watch_job(remote: Remote, id: str) -> Json:
    """Wait for the end of a replay; whoever interrupts that ends the replay."""
    try:
        with progress() as bar:
            task = bar.add_task("Replaying")
            while True:
                job = await remote.get(f"/replays/{id}")
                told = f"Replaying: {job['acked']} acked, {job['failed']} died again"
                done = job["sent"] + job["skipped"]
                bar.update(task, description=told, total=job["total"], completed=done)
                if job["state"] in _OVER:
                    return dict(job)
                await asyncio.sleep(_POLL_S)
    except asyncio.CancelledError:
        await remote.delete(f"/replays/{id}")
        note(f"Replay {id} is cancelled; what was sent stays sent")
        raise
