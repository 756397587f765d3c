"""The types of values on the command line."""

from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

_SCALARS = (bool, int, float, str, Path)
# The placeholder of a value that is not a text.
PLACEHOLDERS = {bool: None, int: "NUMBER", float: "NUMBER", Path: "FILE"}


def shown_value(kind: Any) -> str | None:  # noqa: ANN401 - whatever is a type
    """Return what stands for a value of this type in the help; None for a flag."""
    return PLACEHOLDERS.get(value_type(kind), "TEXT")


def value_type(annotation: Any) -> Any:  # noqa: ANN401 - whatever is a type
    """Return the type of a value on the command line; lists repeat the flag, tables are JSON."""
    if get_origin(annotation) is Annotated:
        return value_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        # What may be a number or a word is a text, until the settings are checked.
        return value_type(kinds[0]) if len(kinds) == 1 else str
    if get_origin(annotation) is list:
        return list[str]
    return annotation if annotation in _SCALARS else str
