"""`holdfast token`: the tokens of the administration, which are files in the data directory."""

from typing import Annotated

import typer

from holdfast.cli.failures import Exit, failed
from holdfast.cli.moments import moment, now_ms
from holdfast.cli.options import AsJson, OfData
from holdfast.cli.output import answer
from holdfast.cli.program import group_of_commands
from holdfast.cli.remote import data_directory
from holdfast.web.admin.tokens import FILES, Role, TokensUnusable
from holdfast.web.admin.tokens import rotate as rotate_token

program = group_of_commands()

_ROLES = {role.title: role for role in Role}


@program.command()
def rotate(
    *,
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="Whose token: operator or reader.")
    ] = Role.OPERATOR.title,
    overlap: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long the old token stays valid, too: a span (10m) or a date "
            "(2026-11-20T08:00); default: not at all.",
        ),
    ] = None,
    data: OfData = None,
    as_json: AsJson = False,
) -> None:
    """Replace a token of the administration by a new one, which no output shows.

    A running server uses it within a second. Whatever uses the old one ends then, or after the
    overlap.

    Example: holdfast token rotate --overlap 10m
    """
    if role not in _ROLES:
        raise typer.BadParameter(f"{role!r} is not a role: write operator or reader")
    directory = data or data_directory()
    until_ms = moment(overlap, ago=False)
    left_s = 0.0 if until_ms is None else max((until_ms - now_ms()) / 1000, 0.0)
    try:
        rotate_token(directory, _ROLES[role], left_s)
    except (TokensUnusable, OSError) as error:
        raise failed(str(error), Exit.USAGE) from None
    path = directory / FILES[_ROLES[role]]
    until = f"; the old one stays valid for {left_s:.0f} s" if left_s else ""
    shown = {"role": role, "file": str(path), "overlap": left_s}
    answer(shown, f"{path} has a new token{until}", as_json=as_json)


@program.callback()
def about() -> None:
    """Has one command so far, which keeps its name."""
