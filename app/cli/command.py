"""`holdfast command`: sends a command of xmlBlaster's administrative grammar."""

import sys
from typing import Annotated

import typer

from holdfast.bayeux.commands.grammar import understand
from holdfast.bayeux.wire.command_refused import CommandRefused
from holdfast.cli.options import ToServer
from holdfast.cli.output import print_json, visible
from holdfast.cli.program import Program

program = Program()


@program.command()
def command(
    *,
    text: Annotated[
        str, typer.Argument(metavar="COMMAND", help="Such as client/joe/1/?dispatcherActive=true.")
    ],
    value: Annotated[
        str | None, typer.Option(help="Value to set, unless the command has one.")
    ] = None,
    server: ToServer,
) -> None:
    """Run an administrative command.

    A reader's token is enough for commands that only read. docs/reference/administration.md lists
    all commands.

    Example: holdfast command 'client/joe/1/?dispatcherActive=true'
    """
    try:
        changes = understand(text, value).changes
    except CommandRefused as refused:
        raise typer.BadParameter(refused.message) from None
    if changes or value is not None:
        result = server.ask("POST", "/commands", {"command": text, "value": value})
    else:
        result = server.get("/commands", {"command": text})
    if server.as_json:
        print_json(result)
        return
    for line in str(result["info"] or result["value"]).splitlines():
        sys.stdout.write(visible(line) + "\n")
