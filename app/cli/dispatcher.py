"""`holdfast dispatcher`: shows what is held back, holds and resumes delivery to sessions."""

import sys
from typing import Annotated

import typer

from holdfast.cli.asking import Show, asks
from holdfast.cli.holds import Reason, Until, hold_text, unstored_text
from holdfast.cli.options import Key, ToServer, place_of
from holdfast.cli.output import FOR, Json, print_facts, print_json, print_table, since, when
from holdfast.cli.program import group_of_commands
from holdfast.cli.remote import Server
from holdfast.units import counted

program = group_of_commands()

# The facts about a session's delivery.
_FACTS = (
    "key",
    "state",
    "active",
    "has_connection",
    "waiting",
    "in_flight",
    "retry",
    "last_failure",
)


def _why(channel: Json) -> str:
    """Why a channel is held, and when that may end."""
    if channel["who"] != "guard":
        return hold_text(channel)
    again = "now" if channel["next_attempt"] is None else f"at {when(channel['next_attempt'])}"
    return f"{channel['reason']}; {counted(channel['attempts'], 'failed probe')}, next {again}"


def _row(held: Json) -> list[object]:
    """Return a row about a session, or a channel."""
    if "key" not in held:
        return [held["channel"], "", since(held["since"]), _why(held)]
    entries = held["waiting"] + held["in_flight"]
    return [held["key"], entries, since(held["hold"]["since"]), hold_text(held["hold"])]


@program.command("show")
def show(
    *,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION", help="A session, such as joe/1; default: all that is held."
        ),
    ] = None,
    server: ToServer,
) -> None:
    """Show delivery to a session, or all held sessions and channels."""
    if key is not None:
        _report(server, server.get(f"/sessions/{place_of(key)}"))
        return
    channels = server.get("/held-channels")["items"]
    sessions = [*server.items("/sessions", {"held": True})]
    if server.as_json:
        print_json({"sessions": sessions, "channels": channels})
    else:
        print_table(("HELD", "ENTRIES", FOR, "WHY"), [*map(_row, sessions + channels)])


def _report(server: Server, session: Json, change: str = "") -> None:
    """Print the facts about a session's delivery, or how it changed."""
    facts = {name: session[name] for name in _FACTS}
    if server.as_json:
        told = {"unstored": session["unstored"]} if change else {}
        print_json({**facts, "hold": session["hold"], **told})
    elif change:
        waiting = counted(facts["waiting"], "entry is", "entries are")
        more = unstored_text(session)
        sys.stdout.write(f"{facts['key']} is {change}; {waiting} waiting{more}\n")
    else:
        again = when(session["next_attempt"])
        print_facts({**facts, "hold": hold_text(session["hold"]), "next attempt": again})


def _is(change: str) -> Show:
    return lambda server, session, _: _report(server, session, change)


@asks(program, "hold", "PUT /sessions/{key}/hold", _is("held back"))
def hold(*, key: Key, reason: Reason = "", until: Until = None) -> None:
    """Hold back delivery to a session.

    Its messages wait, and none is lost, until the given time or until you resume delivery.

    Example: holdfast dispatcher hold joe/1 --reason 'disk full' --until 30m
    """


@asks(program, "resume", "DELETE /sessions/{key}/hold", _is("active"))
def resume(*, key: Key) -> None:
    """Resume delivery to a session."""
