"""The command `holdfast`."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from app.cli.command import command
from app.cli.dead import dead
from app.cli.dispatcher import dispatcher
from app.cli.flags import flags_of_settings
from app.cli.serve import serve
from app.cli.session import session

program = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    add_completion=False,
    # Tables would cut the longer flags short.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"holdfast {version('holdfast')}\n")
        raise typer.Exit


@program.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    """Reliable messages for browsers and scripts: a Bayeux/CometD server."""


program.command("serve")(flags_of_settings(serve))
for group in (dead, session, dispatcher):
    program.add_typer(group)
program.command("command")(command)


def main() -> None:
    """Run the command."""
    program()
