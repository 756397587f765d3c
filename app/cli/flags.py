"""Flags made from the settings, so that there is one list of them."""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from app.settings import Settings

_SCALARS = (bool, int, str, Path)


def flags_of_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command a flag for each setting; what is not given is left to other sources."""

    def with_flags(config: Path | None, **flags: Any) -> None:
        given = {name: value for name, value in flags.items() if value not in (None, [])}
        command(config, given)

    file = inspect.Parameter(
        "config",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None, typer.Option("--config", help="Settings file; else ./holdfast.toml.")
        ],
    )
    parameters = [_parameter(name, field) for name, field in Settings.model_fields.items()]
    with_flags.__signature__ = inspect.Signature([file, *parameters])  # type: ignore[attr-defined]
    with_flags.__doc__ = command.__doc__
    return with_flags


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kind, flag = _kind(field.annotation), "--" + name.replace("_", "-")
    names = [f"{flag}/--no-{flag[2:]}"] if kind is bool else [flag]
    option = typer.Option(*names, help=_help(field), show_default=False)
    default: Any = [] if get_origin(kind) is list else None
    annotation = kind if default == [] else kind | None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, option],
    )


def _kind(annotation: Any) -> Any:
    """How a setting is written on the command line: lists by repeating, tables as JSON."""
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _kind(next(kind for kind in get_args(annotation) if kind is not NoneType))
    if get_origin(annotation) is list:
        return list[str]
    return annotation if annotation in _SCALARS else str


def _help(field: FieldInfo) -> str:
    default = field.get_default()
    if default is None or default in ([], {}):
        return field.description or ""
    shown = ", ".join(map(str, default)) if isinstance(default, list) else default
    return f"{field.description} [{str(shown).lower() if isinstance(default, bool) else shown}]"
