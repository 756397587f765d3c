"""`holdfast dead remark`: shows or changes the remark on a group of dead letters."""

from typing import Annotated

import typer

from holdfast.cli.options import ToServer
from holdfast.cli.output import Json, answer
from holdfast.cli.remote import Remote

_GROUPS = "/dead-letters/groups"


def remark(
    *,
    fingerprint: Annotated[
        str,
        typer.Argument(
            metavar="FINGERPRINT", help="Fingerprint of the group; see dead list --groups."
        ),
    ],
    assignee: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who takes care of the group.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="What is known about it.")] = None,
    server: ToServer,
) -> None:
    """Show or change the remark on a group of dead letters.

    Options that are not given change nothing; an empty text removes a value.
    """
    if not (fingerprint.isascii() and fingerprint.isalnum()):
        raise typer.BadParameter(f"{fingerprint!r} is not a fingerprint: see dead list --groups")
    given = {"assignee": assignee, "note": note}
    changed = {name: text for name, text in given.items() if text is not None}

    async def conversation(remote: Remote) -> Json:
        groups = (await remote.get(_GROUPS, {"fingerprint": fingerprint}))["items"]
        known = (groups[0]["remark"] if groups else None) or {"assignee": "", "note": ""}
        if not changed and groups:
            return dict(known)
        wanted = {name: known[name] for name in given} | changed
        return dict(await remote.ask("PUT", f"{_GROUPS}/{fingerprint}/remark", wanted))

    remark = server.talk(conversation)
    text = f"{remark['assignee'] or 'nobody'}: {remark['note'] or 'no note'}"
    answer(remark, text, as_json=server.as_json)
