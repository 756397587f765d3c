"""The command `holdfast`."""

import typer

from app.cli.dead import dead
from app.cli.dispatcher import dispatcher
from app.cli.flags import flags_of_settings
from app.cli.serve import serve
from app.cli.session import session

program = typer.Typer(
    name="holdfast",
    help="Reliable messages for browsers and scripts: a Bayeux/CometD server.",
    no_args_is_help=True,
    add_completion=False,
    # Tables would cut the longer flags short.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


program.command("serve")(flags_of_settings(serve))
for group in (dead, session, dispatcher):
    program.add_typer(group)


def main() -> None:
    """Run the command."""
    program()
