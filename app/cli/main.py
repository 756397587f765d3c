"""The command `holdfast`."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, cast

import typer
from typer.core import TyperCommand, TyperGroup

# Where each command is, and what it says of itself. A module is imported when its command is used:
# whoever asks what there is need not wait for the server, nor a script for what draws tables.
COMMANDS = {
    "serve": ("app.cli.serve", "Run the server until it gets SIGTERM, SIGINT or SIGHUP."),
    "command": ("app.cli.command", "Ask or run an administrative command."),
    "dead": ("app.cli.dead", "Dead letters."),
    "session": ("app.cli.session", "Sessions."),
    "dispatcher": ("app.cli.dispatcher", "Delivery to sessions."),
    "pipeline": ("app.cli.pipeline", "What became of messages: reports over the journal."),
}


def load(name: str) -> TyperCommand | TyperGroup:
    """The command itself."""
    module, _ = COMMANDS[name]
    found = typer.main.get_command(import_module(module).program)
    return cast("TyperCommand | TyperGroup", found)


class _Commands(TyperGroup):
    """Knows commands by name and description until one of them is used."""

    def resolve_command(  # type: ignore[override]
        self, context: typer.Context, words: list[str]
    ) -> tuple[str | None, TyperCommand | TyperGroup | None, list[str]]:
        name, known, rest = super().resolve_command(context, words)
        return name, load(name) if name and known else None, rest


program = typer.Typer(
    name="holdfast",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    # Tables would cut the longer flags short.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _core() -> str:
    found = find_spec("app.bayeux.dispatch")
    is_source = found is None or str(found.origin).endswith(".py")
    return "interpreted" if is_source else "compiled"


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"holdfast {version('holdfast')} ({_core()} core)\n")
        raise typer.Exit


@program.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    """Reliable messages for browsers and scripts: a Bayeux/CometD server."""


def _describe(name: str, help: str) -> None:
    @program.command(name, help=help)
    def described() -> None:
        """Stands for the command until it is used."""


for name, (_, text) in COMMANDS.items():
    _describe(name, text)


def main() -> None:
    """Run the command."""
    program()
