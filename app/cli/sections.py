"""How helps are laid out: options in sections, commands with whole sentences."""

from collections import defaultdict
from typing import TYPE_CHECKING

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:
    from typer._click import HelpFormatter

_FIRST = ("Arguments", "Options")


class InSections(TyperCommand):
    """Shows its options under the headings of their panels."""

    def format_options(self, context: typer.Context, formatter: "HelpFormatter") -> None:  # type: ignore[override]
        sections = defaultdict(list)
        for option in self.get_params(context):
            if row := option.get_help_record(context):
                heading, name = _placed(option, row[0])
                sections[heading].append((name, row[1]))
        for heading in sorted(sections, key=lambda each: each not in _FIRST):
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


class CommandGroup(TyperGroup):
    """Says in a whole sentence what each of its commands does."""

    def format_commands(self, context: typer.Context, formatter: "HelpFormatter") -> None:  # type: ignore[override]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, _sentence(command.help)) for name, command in self.commands.items()]
            )


def _sentence(help: str | None) -> str:
    return " ".join((help or "").partition("\n\n")[0].split())


def _placed(option: object, shown: str) -> tuple[str, str]:
    """Return the heading of an option or argument, and what it is called there."""
    if isinstance(option, TyperArgument):
        return "Arguments", option.display_name_raw
    return (option.rich_help_panel if isinstance(option, TyperOption) else None) or "Options", shown
