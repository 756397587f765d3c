"""The command `holdfast`."""

import typer

from app.cli.flags import flags_of_settings
from app.cli.serve import serve

program = typer.Typer(
    name="holdfast",
    help="Reliable messages for browsers and scripts: a Bayeux/CometD server.",
    no_args_is_help=True,
    add_completion=False,
    # Tables would cut the longer flags short.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@program.callback()
def _holdfast() -> None:
    """A command of its own makes typer keep `serve` a subcommand."""


program.command("serve")(flags_of_settings(serve))


def main() -> None:
    """Run the command."""
    program()
