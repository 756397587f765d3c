"""The command `holdfast`."""

import gc
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, cast

import typer
from typer.core import TyperCommand, TyperGroup

# The module and help text of each command. A module is imported when its command is used, so that
# help need not wait for the server's modules, nor scripts for those that draw tables.
COMMANDS = {
    "serve": ("holdfast.cli.serve", "Run the server until SIGTERM, SIGINT or SIGHUP."),
    "command": ("holdfast.cli.command", "Run an administrative command."),
    "dead": ("holdfast.cli.dead", "List, replay and remove dead letters."),
    "session": ("holdfast.cli.session", "List and end sessions."),
    "subject": ("holdfast.cli.subject", "List and clear what waits for subjects."),
    "work": ("holdfast.cli.work", "List and clear work queues; show their receivers."),
    "topic": (
        "holdfast.cli.topic",
        "List, show and erase topics; show what channels keep, and hold them.",
    ),
    "dispatcher": ("holdfast.cli.dispatcher", "Hold back and resume delivery to sessions."),
    "user": ("holdfast.cli.user", "Manage users who log in with a password."),
    "rights": ("holdfast.cli.rights", "Check and explain rights."),
    "pipeline": ("holdfast.cli.pipeline", "Read the journal into tables and report on messages."),
}


def load(name: str) -> TyperCommand | TyperGroup:
    """Import the command."""
    module, text = COMMANDS[name]
    # Modules make many objects and no garbage that is worth a look at all of them.
    gc.disable()
    try:
        found = typer.main.get_command(import_module(module).program)
    finally:
        gc.enable()
    if isinstance(found, TyperGroup):
        found.help = text
    return cast("TyperCommand | TyperGroup", found)


class _Commands(TyperGroup):
    """Has only names and help texts of commands until one is used."""

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
    # Tables would truncate long flags.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _core() -> str:
    found = find_spec("holdfast.bayeux.dispatch")
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
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Reliable messaging for browsers and scripts: a Bayeux/CometD server."""


def _describe(name: str, help: str) -> None:
    @program.command(name, help=help)
    def described() -> None:
        """Placeholder until the command is used."""


for name, (_, text) in COMMANDS.items():
    _describe(name, text)


def main() -> None:
    """Run the command."""
    program()
