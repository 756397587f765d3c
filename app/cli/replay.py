"""`holdfast dead replay`: replays dead letters and shows the progress."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated

import orjson
import typer

from holdfast.cli.failures import Exit
from holdfast.cli.model_options import options_of
from holdfast.cli.options import (
    DryRun,
    Everything,
    Ids,
    LetterConditions,
    ToServer,
    Yes,
    confirm,
    replay_of,
    wanted,
)
from holdfast.cli.output import (
    Json,
    age,
    complain,
    note,
    print_items,
    print_json,
    progress,
    spinner,
)
from holdfast.cli.remote import Remote
from holdfast.store.replay_options import ReplayOptions
from holdfast.units import counted

_POLL_S = 0.5
# What lets letters be replayed that were skipped for these reasons.
_REMEDIES = {
    "receiver": "name another with --to",
    "generation": "allow more replays with --max-replays",
}
_REPLAYS = (
    "id", "state", age("started"), "who",
    "total", "sent", "acked", "died_again", "skipped", "reason",
)  # fmt: skip

HowToReplay = Annotated[Json, options_of(ReplayOptions, without=["edit"])]


def replay(
    *,
    ids: Ids = None,
    conditions: LetterConditions,
    everything: Everything = False,
    options: HowToReplay,
    dry_run: DryRun = False,
    detach: Annotated[bool, typer.Option(help="Do not wait for the end of the replay.")] = False,
    data: Annotated[
        str | None, typer.Option(metavar="JSON", help="New data for the one letter.")
    ] = None,
    watch: Annotated[
        str | None, typer.Option(metavar="ID", help="Watch this replay instead of starting one.")
    ] = None,
    cancel: Annotated[
        str | None, typer.Option(metavar="ID", help="Cancel this replay instead of starting one.")
    ] = None,
    yes: Yes = False,
    server: ToServer,
) -> None:
    """Deliver dead letters again.

    Shows how many, and asks first. Ctrl-C cancels the replay that is being watched.
    With --data, one letter is sent as a new message; the letter keeps its data.

    Example: holdfast dead replay --code user.update.error --since 2h --rate 100
    """
    if watch is None and cancel is None:
        if data is not None:
            options["edit"] = {"data": _edited(data, ids)}
        letters = wanted(ids, conditions, everything=everything) | {"options": options}
        begin = partial(_begin, letters=letters, detach=detach, yes=yes, is_quiet=server.as_json)
        job = server.talk(partial(_plan, letters=letters) if dry_run else begin)
    else:
        job = server.talk(_known(watch, cancel))
    has_nothing_to_do = job["total"] == job["skipped"] and not (dry_run and job["total"])
    if job["state"] == "planned" and has_nothing_to_do and not server.as_json:
        complain(_why_nothing(job, ids, options.get("to")))
        raise typer.Exit(Exit.FAILED)
    report(job, as_json=server.as_json)


def _edited(data: str, ids: list[str] | None) -> object:
    """Return the new data of the letter."""
    if len(ids or ()) != 1:
        raise typer.BadParameter("--data needs the id of exactly one letter")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"--data is not JSON: {error}") from None


async def _plan(remote: Remote, letters: Json) -> Json:
    with spinner("Counting"):
        return await remote.ask("POST", "/replays", {**letters, "dry_run": True})


async def _begin(remote: Remote, letters: Json, *, detach: bool, yes: bool, is_quiet: bool) -> Json:
    """Start a replay, if any letters match and the user confirms."""
    plan = await _plan(remote, letters)
    left = plan["total"] - plan["skipped"]
    if not left:
        return plan
    if not is_quiet:
        note(_summary(plan))
    to = letters["options"].get("to")
    whom = f" to {to}" if to else ""
    confirm(f"Deliver {counted(left, 'dead letter')} again{whom}?", yes=yes)
    job = await remote.ask("POST", "/replays", {**letters, "dry_run": False})
    if detach:
        return job
    if not is_quiet:
        note(f"Replay {job['id']} has started; Ctrl-C cancels it")
    return await watch_job(remote, str(job["id"]))


def _known(watch: str | None, cancel: str | None) -> Callable[[Remote], Awaitable[Json]]:
    """Return the conversation that watches or cancels a running replay."""
    if watch is not None and cancel is not None:
        raise typer.BadParameter("use either --watch or --cancel")
    id = replay_of(watch or cancel or "")
    if cancel is not None:
        return lambda remote: remote.ask("DELETE", f"/replays/{id}")
    return lambda remote: watch_job(remote, id)


def replays(*, server: ToServer) -> None:
    """List replays, newest first."""
    print_items(_REPLAYS, server.get("/replays")["items"], as_json=server.as_json)


def report(job: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(job, is_line=True)
    elif job["state"] == "planned":
        sys.stdout.write(_summary(job) + "\n")
    else:
        text = f"Replay {job['id']} is {job['state']}: {job['sent']} of {job['total']} sent"
        text += f", {job['acked']} acked, {job['died_again']} died again, {job['skipped']} skipped"
        text += _why(job)
        sys.stdout.write(text + "\n")
        if job["reason"]:
            complain(str(job["reason"]))
    # A replay that has just started has counted nothing yet.
    is_idle = job["state"] in ("planned", "done") and job["total"] == job["skipped"]
    if is_idle or job["state"] in ("stopped", "failed"):
        raise typer.Exit(Exit.FAILED)


def _summary(plan: Json) -> str:
    total, skipped = plan["total"], plan["skipped"]
    if total == 1:
        would = ", and would be skipped" if skipped else ""
    else:
        would = f", {skipped} of them would be skipped"
    parts = [_matching(total) + would + _why(plan)]
    for name in ("channels", "receivers"):
        counts = ", ".join(f"{key} {count}" for key, count in plan[name].items())
        parts.append(f"{name}: {counts or 'none'}")
    return "; ".join(parts)


def _matching(total: int) -> str:
    return counted(total, "dead letter matches", "dead letters match")


def _why_nothing(plan: Json, ids: list[str] | None, to: str | None) -> str:
    """Return why no letter would be replayed, and what to do about it."""
    total = plan["total"]
    if not total:
        match ids:
            case [id]:
                which = f"there is no dead letter {id}"
            case [_, *_]:
                which = "there is no dead letter with any of these ids"
            case _:
                which = "no dead letters match"
        return f"{which}: list them with holdfast dead list"
    why = _reasons(plan)
    if [*plan["skips"]] == ["receiver"]:
        gone = [to] if to else [*plan["receivers"]]
        whose = "its" if total == 1 else "their"
        why = (
            f"{whose} receiver {gone[0]} is gone" if len(gone) == 1 else "their receivers are gone"
        )
    remedies = [remedy for reason, remedy in _REMEDIES.items() if reason in plan["skips"]]
    return "; ".join([f"{_matching(total)}. Nothing was replayed: {why}", *remedies])


def _why(job: Json) -> str:
    reasons = _reasons(job)
    return f" ({reasons})" if reasons else ""


def _reasons(job: Json) -> str:
    # Commands that only look at tables need not wait until the store's modules are loaded.
    from holdfast.store.replay_jobs import SKIP_WORDS

    skips = job["skips"].items()
    return ", ".join(f"{count} {SKIP_WORDS.get(why, why)}" for why, count in skips)


async def watch_job(remote: Remote, id: str) -> Json:
    """Wait for the end of a replay; Ctrl-C cancels it."""
    try:
        with progress() as bar:
            task = bar.add_task("Replaying")
            while True:
                job = await remote.get(f"/replays/{id}")
                text = f"Replaying: {job['acked']} acked, {job['died_again']} died again"
                done = job["sent"] + job["skipped"]
                bar.update(task, description=text, total=job["total"], completed=done)
                if job["over"]:
                    return dict(job)
                await asyncio.sleep(_POLL_S)
    except asyncio.CancelledError:
        await remote.ask("DELETE", f"/replays/{id}")
        note(f"Replay {id} is cancelled; messages that were sent stay sent")
        raise
