"""`holdfast dead replay`: replays dead letters and shows the progress."""

import sys
import time
from math import inf
from typing import Annotated

import orjson
import typer

from holdfast.cli.failures import Exit, failed
from holdfast.cli.letter_options import Everything, Ids, LetterConditions, replay_of, wanted
from holdfast.cli.lists import Range
from holdfast.cli.model_options import options_of
from holdfast.cli.moments import span_s
from holdfast.cli.options import DryRun, ToServer, Yes, confirm
from holdfast.cli.output import (
    Json,
    age,
    answer,
    complain,
    note,
    print_items,
    print_json,
    progress,
    spinner,
)
from holdfast.cli.remote import Server
from holdfast.store.replays.parameters import ReplayOptions
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
    wait: Annotated[
        str | None,
        typer.Option(
            metavar="[TIME]", help="Wait for the end of the replay, perhaps at most 10m or 2h."
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="JSON", help="New data for the one letter.")
    ] = None,
    watch: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Wait for the end of this replay instead of starting one."),
    ] = None,
    cancel: Annotated[
        str | None, typer.Option(metavar="ID", help="Cancel this replay instead of starting one.")
    ] = None,
    yes: Yes = False,
    server: ToServer,
) -> None:
    """Deliver dead letters again.

    Shows how many, and whose clients are away, and asks first. Ends when the server has the
    replay, and prints its id. With --wait, Ctrl-C cancels the replay. With --data, one letter is
    sent as a new message; the letter keeps its data.

    Example: holdfast dead replay --code user.update.error --since 2h --rate 100
    """
    limit_s = _limit_s(wait)
    if watch is None and cancel is None:
        if data is not None:
            options["edit"] = {"data": _edited(data, ids)}
        letters = wanted(ids, conditions, everything=everything) | {"options": options}
        job = _plan(server, letters) if dry_run else _begin(server, letters, limit_s, yes=yes)
    else:
        limit_s = inf if limit_s is None and cancel is None else limit_s
        job = _known(server, watch, cancel, limit_s)
    has_nothing_to_do = job["total"] == job["skipped"] and not (dry_run and job["total"])
    if job["state"] == "planned" and has_nothing_to_do and not server.as_json:
        raise failed(_why_nothing(job, ids, options.get("to")))
    if job["state"] == "planned" or cancel is not None:
        report(job, as_json=server.as_json)
    elif limit_s is None:
        answer(job, str(job["id"]), as_json=server.as_json)
    else:
        report(job, as_json=server.as_json, is_awaited=True)


def _limit_s(wait: str | None) -> float | None:
    """Return how long to wait for the end of the replay; None is not at all."""
    if wait is None:
        return None
    return span_s(wait) if wait else inf


def _edited(data: str, ids: list[str] | None) -> object:
    """Return the new data of the letter."""
    if len(ids or ()) != 1:
        raise typer.BadParameter("--data needs the id of exactly one letter")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"--data is not JSON: {error}") from None


def _plan(server: Server, letters: Json) -> Json:
    with spinner("Counting"):
        return server.ask("POST", "/replays", {**letters, "dry_run": True})


def _begin(server: Server, letters: Json, limit_s: float | None, *, yes: bool) -> Json:
    """Start a replay, if any letters match and the user confirms; wait for its end on request."""
    plan = _plan(server, letters)
    left = plan["total"] - plan["skipped"]
    if not left:
        return plan
    if not (server.as_json and yes):
        note(_summary(plan))
    to = letters["options"].get("to")
    whom = f" to {to}" if to else ""
    confirm(f"Deliver {counted(left, 'dead letter')} again{whom}?", yes=yes)
    job = server.ask("POST", "/replays", {**letters, "dry_run": False})
    id = str(job["id"])
    if limit_s is None:
        if not server.as_json:
            note(f"The replay has started; holdfast dead replay --watch {id} waits for its end")
        return job
    if not server.as_json:
        note(f"Replay {id} has started; Ctrl-C cancels it")
    return watch_job(server, id, limit_s)


def _known(server: Server, watch: str | None, cancel: str | None, limit_s: float | None) -> Json:
    """Watch or cancel a running replay."""
    if watch is not None and cancel is not None:
        raise typer.BadParameter("use either --watch or --cancel")
    id = replay_of(watch or cancel or "")
    if cancel is not None:
        return server.ask("DELETE", f"/replays/{id}")
    return watch_job(server, id, inf if limit_s is None else limit_s)


def replays(*, shown: Range, server: ToServer) -> None:
    """List replays, newest first."""
    found = shown.sorted(server.get("/replays")["items"])
    print_items(_REPLAYS, found[: shown.limit], as_json=server.as_json)


def report(job: Json, *, as_json: bool, is_awaited: bool = False) -> None:
    """Print what has become of a replay, and end the program if it is no success."""
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
    is_bad = job["state"] in ("stopped", "failed") or (is_awaited and job["state"] == "cancelled")
    if is_idle or is_bad:
        raise typer.Exit(Exit.FAILED)
    if is_awaited and not job["over"]:
        raise failed(
            f"the replay goes on: holdfast dead replay --watch {job['id']} waits again",
            Exit.UNCERTAIN,
        )


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
    # Older servers do not say.
    if away := plan.get("away"):
        counts = ", ".join(f"{key} {count}" for key, count in away.items())
        parts.append(f"away, so their letters wait until they come back: {counts}")
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
    from holdfast.store.replays.job_records import SKIP_WORDS

    skips = job["skips"].items()
    return ", ".join(f"{count} {SKIP_WORDS.get(why, why)}" for why, count in skips)


def watch_job(server: Server, id: str, limit_s: float = inf) -> Json:
    """Wait for the end of a replay, or for a limited time; Ctrl-C cancels the replay."""
    ends_at = time.monotonic() + limit_s
    try:
        with progress() as bar:
            task = bar.add_task("Replaying")
            while True:
                job = server.get(f"/replays/{id}")
                text = f"Replaying: {job['acked']} acked, {job['died_again']} died again"
                done = job["sent"] + job["skipped"]
                bar.update(task, description=text, total=job["total"], completed=done)
                left_s = ends_at - time.monotonic()
                if job["over"] or left_s <= 0:
                    return job
                time.sleep(min(_POLL_S, left_s))
    except KeyboardInterrupt:
        server.ask("DELETE", f"/replays/{id}")
        note(f"Replay {id} is cancelled; messages that were sent stay sent")
        raise
