"""`holdfast session`: look at sessions and their queues, end them."""

import sys
from typing import Annotated

import typer

from app.cli.failures import Exit
from app.cli.lists import Most, print_list
from app.cli.options import (
    AsJson,
    Conditions,
    DryRun,
    Key,
    Yes,
    confirm,
    gathers,
    moment,
    now_ms,
    path_of,
    place,
)
from app.cli.output import (
    Moment,
    brief,
    patience,
    print_facts,
    print_json,
    print_table,
    progress,
    when,
)
from app.cli.remote import Json, Place, Remote, talk

program = typer.Typer(
    help="Sessions.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


# Sessions that one request ends, so that somebody sees how it goes.
_AT_ONCE = 2000


def meant(
    prefix: Annotated[str, typer.Option("--prefix", help="Beginning of the key.")] = "",
    state: Annotated[
        str | None, typer.Option("--state", help="UNDEF, ALIVE, POLLING or DEAD.")
    ] = None,
    held: Annotated[
        bool | None, typer.Option("--held/--not-held", help="Held back, or not.")
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="Subscribed to exactly this.")
    ] = None,
    unconnected: Annotated[
        bool | None,
        typer.Option(
            "--unconnected/--connected",
            help="Without a client: not come yet, left or lost; or not.",
        ),
    ] = None,
    silent_for: Annotated[
        str | None,
        typer.Option("--silent-for", metavar="TIME", help="Not heard of for 2h, since 2026-11-20."),
    ] = None,
) -> Conditions:
    """Which sessions are meant, as the server takes it."""
    given = {
        "prefix": prefix or None,
        "state": state,
        "held": held,
        "channel": channel,
        "unconnected": unconnected,
        "seen_before": moment(silent_for, ago=True),
    }
    return {name: value for name, value in given.items() if value is not None}


@program.command("list")
@gathers(meant, place)
def list_sessions(
    *,
    meant: Conditions,
    limit: Most = None,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """List sessions by key, with what is in their queues."""
    print_list(
        place,
        "/sessions",
        meant,
        limit=limit,
        as_json=as_json,
        head=("KEY", "STATE", "ACTIVE", "WAITING", "HANDED", "BYTES", "TRANSPORT", "SEEN"),
        row=_row,
    )


def _row(item: Json) -> list[object]:
    return [
        item["key"], item["state"], "yes" if item["active"] else "held", item["waiting"],
        item["handed"], item["bytes"], item["transport"], Moment(item["last_seen"]),
    ]  # fmt: skip


@program.command("show")
@gathers(place)
def show_session(
    *,
    key: Key,
    queue: Annotated[
        int, typer.Option("--queue", min=0, max=100, help="Entries of the queue to show.")
    ] = 10,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Show one session and the head of its queue."""
    path = path_of(key)

    async def conversation(remote: Remote) -> Json:
        found = await remote.get(path)
        if queue:
            found["queue"] = (await remote.get(f"{path}/queue", {"limit": queue}))["items"]
        return found

    found = talk(place, conversation)
    if as_json:
        print_json(found)
        return
    entries = found.pop("queue", [])
    for name in ("created", "last_seen", "expires", "next_attempt"):
        found[name] = when(found[name])
    print_facts({**found, "hold": hold_of(found), "channels": " ".join(found["channels"])})
    if entries:
        print_table(("ID", "CHANNEL", "STATE", "ATTEMPTS", "BYTES", "DATA"), map(_entry, entries))


def _entry(entry: Json) -> list[object]:
    data = "(too long)" if entry["is_cut"] else brief(entry["data"])
    names = ("id", "channel", "state", "attempts", "bytes")
    return [*(entry[name] for name in names), data]


def hold_of(found: Json) -> str:
    """Why a session is held back, in words."""
    hold = found["hold"]
    if hold is None:
        return ""
    until = f" until {when(hold['until'])}" if hold["until"] is not None else ""
    return f"{hold['reason'] or 'no reason given'} ({hold['who']}, {when(hold['since'])}{until})"


@program.command("kill")
@gathers(place)
def kill(*, key: Key, yes: Yes = False, as_json: AsJson = False, place: Place) -> None:
    """End a session.

    What is in its queue becomes dead letters; its client may begin anew.
    """
    path = path_of(key)

    async def conversation(remote: Remote) -> Json:
        found = await remote.get(path)
        entries = found["waiting"] + found["handed"]
        confirm(f"End {found['key']}? {entries} entries become dead letters.", yes=yes)
        await remote.delete(path)
        return {"key": found["key"], "ended": True, "dead": entries}

    done = talk(place, conversation)
    if as_json:
        print_json(done, is_line=True)
    else:
        sys.stdout.write(f"{done['key']} is ended\n")


@program.command("end")
@gathers(meant, place)
def end(
    *,
    meant: Conditions,
    everything: Annotated[bool, typer.Option("--all", help="Every session is meant.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """End all sessions that the options describe.

    What is in their queues becomes dead letters; their clients may begin anew.
    """
    if bool(meant) is everything:
        raise typer.BadParameter("say which sessions, or else --all")
    # What begins after the count that somebody said yes to is not meant.
    wanted = {"filter": {**meant, "begun_before": now_ms() + 1}, "all": everything}

    async def conversation(remote: Remote) -> Json:
        with patience("Counting"):
            plan = await remote.post("/sessions/end", {**wanted, "dry_run": True})
        if dry_run or not plan["matched"]:
            return dict(plan)
        question = f"End {plan['matched']} sessions? {plan['entries']} entries become dead letters."
        confirm(question, yes=yes)
        return {**plan, "dry_run": False, "ended": await _end(remote, wanted, plan["matched"])}

    done = talk(place, conversation)
    if as_json:
        print_json(done, is_line=True)
    elif done["dry_run"] and done["matched"]:
        sys.stdout.write(f"{done['matched']} sessions would be ended\n")
    else:
        sys.stdout.write(f"{done['ended']} sessions are ended\n")
    is_done = done["dry_run"] or done["ended"] >= done["matched"]
    if not done["matched"] or not is_done:
        raise typer.Exit(Exit.FAILED)


async def _end(remote: Remote, wanted: Conditions, count: int) -> int:
    """How many were ended: part after part, until none is left or no more can be ended."""
    ended: int = 0
    with progress() as bar:
        task = bar.add_task("Ending", total=count)
        while True:
            asked = {**wanted, "dry_run": False, "limit": _AT_ONCE}
            done = await remote.post("/sessions/end", asked)
            ended += done["ended"]
            bar.update(task, completed=min(ended, count))
            if not done["ended"] or done["ended"] >= done["matched"]:
                return ended
