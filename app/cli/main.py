"""The command `holdfast`."""

import typer
from rich.console import Console

from app.cli.flags import flags_of_settings
from app.cli.serve import serve

_errors = Console(stderr=True)

program = typer.Typer(
    name="holdfast",
    help="Reliable messages for browsers and scripts: a Bayeux/CometD server.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@program.callback()
def _holdfast() -> None:
    """A command of its own makes typer keep `serve` a subcommand."""


program.command("serve")(flags_of_settings(serve))


def main() -> None:
    """Run the command."""
    program()
