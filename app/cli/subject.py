"""`holdfast subject`: lists, shows and clears what waits for subjects."""

from typing import Annotated
from urllib.parse import quote

import typer

from holdfast.cli.lists import First, Range, print_first, print_list
from holdfast.cli.options import ToServer, Yes, gathered, group_of_commands
from holdfast.cli.session import ENTRIES
from holdfast.cli.shared_queue import WAITING, clear_queue

program = group_of_commands()

_SUBJECTS = ("subject", *WAITING)
Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="The subject, such as joe.")]


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject.removeprefix('client/'), safe='')}/queue"


@program.command("list")
@gathered
def list_subjects(*, shown: Range, server: ToServer) -> None:
    """List the subjects that messages wait for."""
    print_list(server, "/subjects", {}, _SUBJECTS, shown)


@program.command("show")
@gathered
def show(*, subject: Subject, limit: First = 20, server: ToServer) -> None:
    """Show the first messages that wait for a subject."""
    print_first(server, _path(subject), {"limit": limit}, ENTRIES)


@program.command("clear")
@gathered
def clear(*, subject: Subject, yes: Yes = False, server: ToServer) -> None:
    """Discard all messages that wait for a subject."""
    question = f"Discard all messages that wait for {subject}?"
    clear_queue(server, _path(subject), {}, question, yes=yes)
