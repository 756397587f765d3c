"""Flags made from the settings, so that there is a single list."""

import inspect
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from holdfast.cli.model_options import parameter
from holdfast.settings import SECTIONS

if TYPE_CHECKING:
    from typer._click import HelpFormatter


class InSections(TyperCommand):
    """Shows its options under the headings of the settings."""

    def format_options(self, context: typer.Context, formatter: "HelpFormatter") -> None:  # type: ignore[override]
        sections = defaultdict(list)
        for option in self.get_params(context):
            if isinstance(option, TyperOption) and (row := option.get_help_record(context)):
                sections[option.rich_help_panel or "Options"].append(row)
        for heading in sorted(sections, key="Options".__ne__):
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


def flags_of_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command a flag for each setting; the others come from other sources."""

    def with_flags(config: Path | None, **flags: Any) -> None:
        given = {name: value for name, value in flags.items() if value not in (None, [])}
        command(config, given)

    file = inspect.Parameter(
        "config",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None, typer.Option("--config", help="Settings file; default: ./holdfast.toml.")
        ],
    )
    parameters = [
        parameter(name, field, panel=section.heading)
        for section in SECTIONS
        for name, field in section.model_fields.items()
    ]
    with_flags.__signature__ = inspect.Signature([file, *parameters])  # type: ignore[attr-defined]
    with_flags.__doc__ = command.__doc__
    return with_flags
