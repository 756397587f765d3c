"""The command `holdfast`."""

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, cast

import typer
from typer.core import TyperCommand, TyperGroup

from holdfast.web.admin.listed import LISTED

if TYPE_CHECKING:
    from typer._click import HelpFormatter

_LISTED = {each.name: each.help for each in LISTED}
# These are in `rows.py`; all others have a module each.
_ROWS = ("audit", "channel", "topic", "subject", "work", "reader", "webhook", *_LISTED)
# The module and help text of each command, in groups. A module is imported when its command is
# used, so that help need not wait for the server's modules, nor scripts for those that draw tables.
GROUPS = {
    "Server": {
        "init": "Write the files with which a server begins.",
        "serve": "Run the server until SIGTERM or SIGINT.",
        "restart": "Replace a running server by one of the installed version.",
        "bench": "Put a load on a running server; report rates, latencies and losses.",
        "doctor": "Check what a server and the pipeline need; say how to fix faults.",
        "upgrade": "Show and finish the upgrade of a server's store to the newest layout.",
        "backup": "Back up the stores of a running server, with all its workers.",
        "restore": "Restore the stores of a backup into a data directory that has none.",
        "reshard": "Divide sessions and messages among more or fewer workers of a stopped server.",
        "version": "Show the version, and whether the core is compiled.",
    },
    "Messages": {
        "publish": "Publish messages on a channel.",
        "subscribe": "Show messages as they arrive, until Ctrl-C.",
        "request": "Ask the responders on a channel; print the reply.",
        "respond": "Reply to requests on a channel, until Ctrl-C.",
    },
    "Inspect and manage": {
        "now": "Show what is stuck now, since when, and for whom.",
        "top": "Show a server at work: messages, queues, sessions and dead letters, until Ctrl-C.",
        "session": "List and end sessions.",
        "dispatcher": "Hold back and resume delivery to sessions.",
        "channel": "List channels, show what they keep, hold and release them.",
        "topic": "List, show and erase topics.",
        "subject": "List and clear messages that wait for subjects.",
        "work": "List and clear work queues; show their receivers.",
        "reader": "List requests that read histories without a session.",
        "webhook": "List the URLs to which this server posts messages.",
        "host": "List the machines of a deployment; have one give its shards away.",
        **_LISTED,
        "message": "Show where a message is, and every step that the journal has of it.",
        "dead": "List, replay and remove dead letters.",
    },
    "Administration": {
        "user": "Manage users who log in with a password.",
        "rights": "Check and explain rights.",
        "token": "Replace the tokens of the administration.",
        "audit": "List what operators changed or tried to change, the latest first.",
        "command": "Run an administrative command.",
        "pipeline": "Read the journal into tables and report on messages.",
    },
}
COMMANDS = {name: text for commands in GROUPS.values() for name, text in commands.items()}


@cache
def load(name: str) -> TyperCommand | TyperGroup:
    """Import the command, once."""
    # Help needs no TLS.
    from holdfast.cli.certificates import certificates_read_late

    with certificates_read_late():
        module = import_module(f"holdfast.cli.{'rows' if name in _ROWS else name}")
    program = module.PROGRAMS[name] if name in _ROWS else module.program
    found = typer.main.get_command(program)
    if isinstance(found, TyperGroup):
        found.help = COMMANDS[name]
    return cast("TyperCommand | TyperGroup", found)


class _Commands(TyperGroup):
    """Has only names and help texts of commands until one is used."""

    def resolve_command(  # type: ignore[override]
        self, context: typer.Context, words: list[str]
    ) -> tuple[str | None, TyperCommand | TyperGroup | None, list[str]]:
        if words[0] not in COMMANDS and (meant := _within_groups(words[0])):
            context.fail(f"No such command '{words[0]}'. Did you mean {' or '.join(meant)}?")
        name, known, rest = super().resolve_command(context, words)
        return name, load(name) if name and known else None, rest

    def format_commands(self, context: typer.Context, formatter: "HelpFormatter") -> None:  # type: ignore[override]
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([*commands.items()])


def _within_groups(word: str) -> list[str]:
    """Return the commands of this name that groups have."""
    groups = {
        name: load(name) for name in (*GROUPS["Inspect and manage"], *GROUPS["Administration"])
    }
    return [
        f"'{name} {word}'"
        for name, group in groups.items()
        if isinstance(group, TyperGroup) and word in group.commands
    ]


program = typer.Typer(
    name="holdfast",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=True,
    # Tables would truncate long flags.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from holdfast.cli.installed import facts

        sys.stdout.write("holdfast {version} ({core} core)\n".format_map(facts()))
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


for name, text in COMMANDS.items():
    _describe(name, text)


def main() -> None:
    """Run the command."""
    program()
