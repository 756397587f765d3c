"""`holdfast subject`: lists, shows and clears what waits for subjects."""

from typing import Annotated
from urllib.parse import quote

import typer

from holdfast.cli.program import group_of_commands
from holdfast.cli.remote import Params
from holdfast.cli.shared_queue import WAITING, add_queue_commands

program = group_of_commands()

Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="The subject, such as joe.")]


def _place(subject: str) -> tuple[str, Params]:
    return f"/subjects/{quote(subject.removeprefix('client/'), safe='')}/queue", {}


add_queue_commands(
    program,
    noun="subject",
    wait="for",
    lists=("/subjects", ("subject", *WAITING)),
    name=Subject,
    place=_place,
)
