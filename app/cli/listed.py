"""The commands for what operators list and cancel by id."""

from typing import Annotated

import typer

from holdfast.cli.lists import DATA, Range, print_list
from holdfast.cli.options import ToServer
from holdfast.cli.output import answer, time_of
from holdfast.cli.program import Program, group_of_commands
from holdfast.units import Form
from holdfast.web.admin.listed import Listed

Id = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the message, as in the reply to its publish.")
]


def program_of(listed: Listed) -> Program:
    """Return the commands of a row of the table."""
    program, path = group_of_commands(), f"/{listed.name}"
    columns = [
        time_of(name) if form is Form.TIME else name for name, form in listed.columns.items()
    ]

    @program.command("list", help=f"List {listed.things}, {listed.order}.")
    def list_messages(*, shown: Range, server: ToServer) -> None:
        print_list(server, path, {}, (*columns, DATA), shown)

    @program.command("cancel", help=f"Discard one of the {listed.things}.")
    def cancel(*, id: Id, server: ToServer) -> None:
        server.talk(lambda remote: remote.ask("DELETE", path, params={"id": id}))
        answer({"id": id, "cancelled": True}, f"{id} was cancelled", as_json=server.as_json)

    return program
