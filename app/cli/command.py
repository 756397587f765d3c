"""`holdfast command`: ask, set and do in xmlBlaster's administrative grammar."""

import sys
from typing import Annotated

import typer

from app.bayeux.commands import understand
from app.bayeux.grammar import CommandRefused
from app.cli.options import AsJson, gathers, place
from app.cli.output import print_json, visible
from app.cli.remote import Json, Place, Remote, talk

program = typer.Typer(add_completion=False, rich_markup_mode=None)


@program.command()
@gathers(place)
def command(
    *,
    text: Annotated[
        str, typer.Argument(metavar="COMMAND", help="As client/joe/1/?dispatcherActive=true.")
    ],
    value: Annotated[
        str | None, typer.Option("--value", help="To be set, if it is not in the command.")
    ] = None,
    as_json: AsJson = False,
    place: Place,
) -> None:
    """Ask or run an administrative command.

    What only asks needs no more than the reader's token. The documentation of the administration
    lists what there is.
    """
    try:
        changes = understand(text, value).changes
    except CommandRefused as refused:
        raise typer.BadParameter(refused.message) from None

    async def conversation(remote: Remote) -> Json:
        if changes or value is not None:
            return await remote.post("/commands", {"command": text, "value": value})
        return await remote.get("/commands", {"command": text})

    result = talk(place, conversation)
    if as_json:
        print_json(result)
        return
    for line in str(result["info"] or result["value"]).splitlines():
        sys.stdout.write(visible(line) + "\n")
