"""`holdfast dead remark`: who looks after dead letters that failed alike, and what is known."""

import sys
from typing import Annotated

import typer

from app.cli.options import AsJson, gathers, place
from app.cli.output import print_json
from app.cli.remote import Json, Place, Remote, talk

_GROUPS = "/dead-letters/groups"


@gathers(place)
def remark(
    *,
    fingerprint: Annotated[
        str, typer.Argument(metavar="FINGERPRINT", help="Of the group; see dead list --groups.")
    ],
    assignee: Annotated[
        str | None, typer.Option("--assignee", metavar="NAME", help="Who looks after them.")
    ] = None,
    note: Annotated[
        str | None, typer.Option("--note", metavar="TEXT", help="What is known of them.")
    ] = None,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Show or say who looks after dead letters that failed alike.

    What is not named stays as it is; an empty text takes it away.
    """
    if not (fingerprint.isascii() and fingerprint.isalnum()):
        raise typer.BadParameter(f"{fingerprint!r} is no fingerprint: see dead list --groups")
    given = {"assignee": assignee, "note": note}
    changed = {name: text for name, text in given.items() if text is not None}

    async def conversation(remote: Remote) -> Json:
        groups = (await remote.get(_GROUPS, {"fingerprint": fingerprint}))["items"]
        known = (groups[0]["remark"] if groups else None) or {"assignee": "", "note": ""}
        if not changed and groups:
            return dict(known)
        wanted = {name: known[name] for name in given} | changed
        return dict(await remote.put(f"{_GROUPS}/{fingerprint}/remark", wanted))

    said = talk(place, conversation)
    if as_json:
        print_json(said, is_line=True)
    else:
        sys.stdout.write(f"{said['assignee'] or 'nobody'}: {said['note'] or 'no note'}\n")
