"""`holdfast delayed`: lists messages that wait until they are due, and cancels them."""

from typing import Annotated

import typer

from holdfast.cli.lists import DATA, Range, print_list
from holdfast.cli.options import ToServer
from holdfast.cli.output import answer, time_of
from holdfast.cli.program import group_of_commands

program = group_of_commands()

_PATH = "/delayed"
_COLUMNS = ("id", time_of("due"), "channel", "sender", "bytes", DATA)


@program.command("list")
def list_delayed(*, shown: Range, server: ToServer) -> None:
    """List messages that wait until they are due, those that are due first at the top."""
    print_list(server, _PATH, {}, _COLUMNS, shown)


@program.command("cancel")
def cancel(
    *,
    id: Annotated[
        str,
        typer.Argument(metavar="ID", help="Id of the message, as in the reply to its publish."),
    ],
    server: ToServer,
) -> None:
    """Discard a message before it is due."""
    server.talk(lambda remote: remote.ask("DELETE", _PATH, params={"id": id}))
    answer({"id": id, "cancelled": True}, f"{id} was cancelled", as_json=server.as_json)
