"""Options made from the fields of a model, so that there is a single description."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from holdfast.cli.moments import moment
from holdfast.cli.value_types import PLACEHOLDERS, value_type
from holdfast.store.format.operator_input import Ms, SessionKey
from holdfast.units import Unit, unit_of

# A link of Markdown, with what it shows.
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
_NO_FLAGS: Mapping[str, str] = {}


def options_of(
    model: type[BaseModel],
    *,
    without: Sequence[str],
    flags: Mapping[str, str] = _NO_FLAGS,
) -> Callable[..., dict[str, Any]]:
    """A group of options for a `Program`, which returns the given fields in the server's form.

    A flag has its field's name, unless `flags` has another.
    """
    fields = {each: about for each, about in model.model_fields.items() if each not in without}

    def group(**given: str | bool | float | None) -> dict[str, Any]:
        named = {each: value for each, value in given.items() if value is not None}
        return {each: _understood(fields[each], value) for each, value in named.items()}

    parameters = [
        parameter(each, about, flags.get(each), metavar=each.upper())
        for each, about in fields.items()
    ]
    group.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return group


def parameter(
    name: str,
    field: FieldInfo,
    flag: str | None = None,
    *,
    metavar: str | None = None,
    panel: str | None = None,
) -> inspect.Parameter:
    """Return the option of a field; without a default, because the server knows it."""
    unit = unit_of(field.metadata)
    kind, text = value_type(field.annotation), _help(field, unit)
    if _is(field, Ms):
        kind, metavar, text = str, "TIME", f"{text} A span (2h) or a date (2026-11-20T08:00)."
    elif _is(field, SessionKey):
        metavar = "SESSION"
    elif unit:
        metavar = unit.name
    elif kind in PLACEHOLDERS:
        metavar = None
    is_list = get_origin(kind) is list
    flags = (flag,) if flag else ()
    option = typer.Option(*flags, help=text, metavar=metavar, rich_help_panel=panel)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=[] if is_list else None,
        annotation=Annotated[kind if is_list else kind | None, option],
    )


def _understood(field: FieldInfo, value: Any) -> Any:  # noqa: ANN401 - what an option takes
    if _is(field, Ms):
        return moment(value, ago=True)
    return value.removeprefix("client/") if _is(field, SessionKey) else value


def _is(field: FieldInfo, kind: object) -> bool:
    """Return whether the field has this type, optional or not."""
    return kind in get_args(field.annotation)


def without_links(text: str) -> str:
    """Return a text in Markdown as a terminal shows it."""
    return _LINK.sub(r"\1", text)


def _help(field: FieldInfo, unit: Unit | None) -> str:
    text = without_links(field.description or "")
    default = field.get_default()
    if default is None or default in ([], {}, ""):
        return text
    return f"{text} [{_shown(default, unit)}]"


def _shown(default: Any, unit: Unit | None) -> str:  # noqa: ANN401 - whatever is a default
    if isinstance(default, list):
        return ", ".join(map(str, default))
    if isinstance(default, bool):
        return str(default).lower()
    readable = unit and unit.readable(default)
    return f"{default}, {readable}" if readable else str(default)
