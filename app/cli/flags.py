"""The options that settings come from: their file, and a flag for each."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.model_options import parameter
from holdfast.settings import OFTEN_SET, SECTIONS, SET_OFTEN, Settings

ConfigFile = Annotated[Path | None, typer.Option(help="Settings file; default: ./holdfast.toml.")]


def _given(**flags: Any) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value not in (None, [])}


_given.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        *(parameter(name, Settings.model_fields[name], panel=SET_OFTEN) for name in OFTEN_SET),
        *(
            parameter(name, field, panel=section.heading)
            for section in SECTIONS
            for name, field in section.model_fields.items()
            if name not in OFTEN_SET
        ),
    ]
)
# The others come from other sources.
GivenSettings = Annotated[dict[str, Any], _given]
