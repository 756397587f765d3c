"""`holdfast session`: lists, shows and ends sessions."""

from typing import Annotated

import typer

from holdfast.cli.holds import hold_text
from holdfast.cli.lists import DATA, Range, print_list
from holdfast.cli.model_options import options_of
from holdfast.cli.moments import now_ms
from holdfast.cli.options import (
    Conditions,
    DryRun,
    Key,
    ToServer,
    Yes,
    confirm,
    path_of,
)
from holdfast.cli.output import (
    Column,
    Json,
    age,
    answer,
    counted,
    note,
    print_facts,
    print_items,
    print_json,
)
from holdfast.cli.program import group_of_commands
from holdfast.cli.remote import Remote
from holdfast.cli.sweep import sweep
from holdfast.web.admin.session_filter import SessionFilter

program = group_of_commands()


# Sessions that one request ends, so that there is progress to show.
_AT_ONCE = 2000
_TIMES = ("created", "last_seen", "expires", "next_attempt")


_ACTIVE: Column = ("ACTIVE", lambda session: "yes" if session["active"] else "held")
_SEEN = age("last_seen", "SEEN")
_SESSIONS = ("key", "state", _ACTIVE, "waiting", "in_flight", "bytes", "transport", _SEEN)
ENTRIES = ("id", "channel", "state", "attempts", "bytes", DATA)

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
    path = path_of(key)

    async def conversation(remote: Remote) -> Json:
        found = await remote.get(path)
        if queue:
            found["queue"] = (await remote.get(f"{path}/queue", {"limit": queue}))["items"]
        return found

    found = server.talk(conversation)
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


@program.command("kill")
def kill(*, key: Key, yes: Yes = False, server: ToServer) -> None:
    """End a session.

    Its queue becomes dead letters; its client may begin a new session.
    """
    path = path_of(key)

    async def conversation(remote: Remote) -> Json:
        found = await remote.get(path)
        entries = found["waiting"] + found["in_flight"]
        confirm(f"End {found['key']}? {_become(entries)}.", yes=yes)
        await remote.ask("DELETE", path)
        return {"key": found["key"], "ended": True, "dead": entries}

    done = server.talk(conversation)
    answer(done, f"{done['key']} has ended", as_json=server.as_json)


@program.command("end")
def end(
    *,
    meant: SessionConditions,
    everything: Annotated[bool, typer.Option("--all", help="Apply to all sessions.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    server: ToServer,
) -> None:
    """End all sessions that match the options.

    Their queues become dead letters; their clients may begin new sessions.

    Example: holdfast session end --unconnected --silent-for 2h --dry-run
    """
    if bool(meant) is everything:
        raise typer.BadParameter("give conditions, or --all")
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


def _become(entries: int) -> str:
    return counted(entries, "entry becomes a dead letter", "entries become dead letters")
