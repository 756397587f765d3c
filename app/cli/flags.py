"""Flags made from the settings, so that there is a single list."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.model_options import parameter
from holdfast.settings import SECTIONS

if TYPE_CHECKING:
    pass


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
            Path | None,
            typer.Option(
                "--config", metavar="FILE", help="Settings file; default: ./holdfast.toml."
            ),
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
