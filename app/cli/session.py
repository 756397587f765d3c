"""`holdfast session`: lists, shows and ends sessions."""

from typing import Annotated

import typer

from holdfast.cli.holds import hold_text
from holdfast.cli.lists import ENTRIES, Range, print_list
from holdfast.cli.model_options import options_of
from holdfast.cli.moments import now_ms
from holdfast.cli.options import (
    Conditions,
    DryRun,
    Key,
    ToServer,
    Yes,
    confirm,
    place_of,
)
from holdfast.cli.output import (
    Column,
    age,
    answer,
    note,
    print_facts,
    print_items,
    print_json,
)
from holdfast.cli.program import group_of_commands
from holdfast.cli.remote import Server
from holdfast.cli.sweep import sweep
from holdfast.units import counted
from holdfast.web.admin.session_filter import SessionFilter

program = group_of_commands()


# Sessions that one request ends, so that there is progress to show.
_AT_ONCE = 2000
_TIMES = ("created", "last_seen", "expires", "next_attempt")


_ACTIVE: Column = ("ACTIVE", lambda session: "yes" if session["active"] else "held")
_SEEN = age("last_seen", "SEEN")
_SESSIONS = ("key", "state", _ACTIVE, "waiting", "in_flight", "bytes", "transport", _SEEN)

SessionConditions = Annotated[
    Conditions,
    options_of(
        SessionFilter,
        without=["begun_before"],
        flags={
            "held": "--held/--not-held",
            "unconnected": "--unconnected/--connected",
            "seen_before": "--silent-for",
        },
    ),
]


@program.command("list")
def list_sessions(*, meant: SessionConditions, shown: Range, server: ToServer) -> None:
    """List sessions by name, with the sizes of their queues.

    Example: holdfast session list --held --sort -waiting
    """
    print_list(server, "/sessions", meant, _SESSIONS, shown)


@program.command("show")
def show_session(
    *,
    key: Key,
    queue: Annotated[
        int, typer.Option(min=0, max=100, help="How many entries of its queue to show.")
    ] = 10,
    server: ToServer,
) -> None:
    """Show one session and the head of its queue."""
    path = f"/sessions/{place_of(key)}"
    found = server.get(path)
    if queue:
        found["queue"] = server.get(f"{path}/queue", {"limit": queue})["items"]
    if server.as_json:
        print_json(found)
        return
    entries = found.pop("queue", [])
    channels = " ".join(found["channels"])
    print_facts({**found, "hold": hold_text(found["hold"]), "channels": channels}, _TIMES)
    if entries:
        print_items(ENTRIES, entries)
        count = found["waiting"] + found["in_flight"]
        if count > len(entries):
            note(f"Showing {len(entries)} of {count} entries: use --queue")


@program.command("end")
def end(
    *,
    key: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="A session, such as joe/1, instead of conditions."),
    ] = None,
    meant: SessionConditions,
    everything: Annotated[bool, typer.Option("--all", help="Apply to all sessions.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    server: ToServer,
) -> None:
    """End a session, or all sessions that match the options.

    Their queues become dead letters; their clients may begin new sessions.

    Example: holdfast session end --unconnected --silent-for 2h --dry-run
    """
    if [key is not None, bool(meant), everything].count(True) != 1:
        raise typer.BadParameter("give a session, conditions, or --all")
    if key is not None:
        _end_one(server, f"/sessions/{place_of(key)}", dry_run=dry_run, yes=yes)
        return
    # Later sessions are not included in the number that was confirmed.
    filter = {**meant, "begun_before": now_ms() + 1}
    sweep(
        server,
        "/sessions/end",
        {"filter": filter, "all": everything, "limit": _AT_ONCE},
        question=lambda plan: (
            f"End {counted(plan['matched'], 'session')}? {_become(plan['entries'])}."
        ),
        would=lambda plan: f"{counted(plan['matched'], 'session')} would be ended",
        did=lambda done: counted(done["ended"], "session has ended", "sessions have ended"),
        counts="ended",
        doing="Ending",
        dry_run=dry_run,
        yes=yes,
    )


def _end_one(server: Server, path: str, *, dry_run: bool, yes: bool) -> None:
    found = server.get(path)
    entries = found["waiting"] + found["in_flight"]
    if not dry_run:
        confirm(f"End {found['key']}? {_become(entries)}.", yes=yes)
        server.ask("DELETE", path)
    done = {"key": found["key"], "ended": not dry_run, "dead": entries}
    result = "has ended" if done["ended"] else "would be ended"
    answer(done, f"{done['key']} {result}", as_json=server.as_json)


def _become(entries: int) -> str:
    return counted(entries, "entry becomes a dead letter", "entries become dead letters")
