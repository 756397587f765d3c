"""`holdfast dispatcher`: see who is held back, hold somebody back, let delivery go on."""

import sys
from typing import Annotated

import typer

from app.cli.options import AsJson, Key, gathers, moment, path_of, place
from app.cli.output import Moment, print_facts, print_json, print_table, when
from app.cli.remote import Json, Place, Remote, talk
from app.cli.session import hold_of

program = typer.Typer(
    help="Delivery to sessions.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

# What there is to know of a session's delivery.
_FACTS = ("key", "state", "active", "connected", "waiting", "handed", "retry", "last_failure")


@program.command("show")
@gathers(place)
def show(
    *,
    key: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="As joe/1; else all that is held back.")
    ] = None,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Show delivery to a session, or all that is held."""
    if key is not None:
        path = path_of(key)
        found = talk(place, lambda remote: remote.get(path))
        _show_one(found, as_json=as_json)
        return

    async def conversation(remote: Remote) -> tuple[list[Json], list[Json]]:
        channels = (await remote.get("/held-channels"))["items"]
        held = {"held": True}
        return [item async for item in remote.items("/sessions", held)], channels

    sessions, channels = talk(place, conversation)
    if as_json:
        print_json({"sessions": sessions, "channels": channels})
        return
    rows: list[list[object]] = [
        [
            item["key"],
            item["waiting"] + item["handed"],
            Moment(item["hold"]["since"]),
            hold_of(item),
        ]
        for item in sessions
    ]
    rows += [[item["channel"], "", Moment(item["since"]), _why(item)] for item in channels]
    print_table(("HELD", "ENTRIES", "FOR", "WHY"), rows)


def _why(channel: Json) -> str:
    """Why a channel is held back, and when it is tried again."""
    again = "now" if channel["next_attempt"] is None else f"at {when(channel['next_attempt'])}"
    return f"{channel['reason']}; tried {channel['attempts']} times in vain, next {again}"


def _show_one(found: Json, *, as_json: bool) -> None:
    if as_json:
        print_json({**{name: found[name] for name in _FACTS}, "hold": found["hold"]})
        return
    facts = {name: found[name] for name in _FACTS}
    print_facts({**facts, "next attempt": when(found["next_attempt"]), "hold": hold_of(found)})


@program.command("hold")
@gathers(place)
def hold(
    *,
    key: Key,
    reason: Annotated[str, typer.Option("--reason", help="For whoever looks later.")] = "",
    until: Annotated[
        str | None, typer.Option("--until", help="Go on by itself: in 30m, or 2026-11-20T08:00.")
    ] = None,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Hold a session's delivery back.

    Its messages wait, nothing is lost, until the time given or until it is resumed.
    """
    body = {"reason": reason, "until": moment(until, ago=False)}
    path = path_of(key)
    found = talk(place, lambda remote: remote.put(f"{path}/hold", body))
    if as_json:
        _show_one(found, as_json=True)
    else:
        sys.stdout.write(f"{found['key']} is held back, {found['waiting']} entries wait\n")


@program.command("resume")
@gathers(place)
def resume(
    *,
    key: Annotated[str | None, typer.Argument(metavar="SESSION", help="As joe/1.")] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="A channel that the server holds, instead.")
    ] = None,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Let a session's delivery go on, or that of a channel."""
    if (key is None) is (channel is None):
        raise typer.BadParameter("name a session, or else --channel")
    if key is None:
        talk(place, lambda remote: remote.delete("/held-channels", {"channel": channel}))
        if as_json:
            print_json({"channel": channel, "active": True})
        else:
            sys.stdout.write(f"{channel} flows again\n")
        return
    path = path_of(key)
    found = talk(place, lambda remote: remote.delete(f"{path}/hold"))
    if as_json:
        _show_one(found, as_json=True)
    else:
        sys.stdout.write(f"{found['key']} is active, {found['waiting']} entries wait\n")
