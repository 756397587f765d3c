"""`holdfast session`: look at sessions and their queues, end them."""

import sys
from typing import Annotated

import typer

from app.cli.lists import Most, print_list
from app.cli.options import AsJson, Key, Yes, confirm, gathers, path_of, place
from app.cli.output import Moment, brief, print_facts, print_json, print_table, when
from app.cli.remote import Json, Place, Remote, talk

program = typer.Typer(
    help="Sessions.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


@program.command("list")
@gathers(place)
def list_sessions(
    *,
    prefix: Annotated[str, typer.Option("--prefix", help="Beginning of the key.")] = "",
    state: Annotated[
        str | None, typer.Option("--state", help="UNDEF, ALIVE, POLLING or DEAD.")
    ] = None,
    held: Annotated[
        bool | None, typer.Option("--held/--not-held", help="Held back, or not.")
    ] = None,
    limit: Most = None,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """List sessions by key, with what is in their queues."""
    print_list(
        place,
        "/sessions",
        {"prefix": prefix or None, "state": state, "held": held},
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
