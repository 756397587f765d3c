"""Suggests what was probably meant by a name that does not exist."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return a question that follows an error about a name; empty if no known name is similar."""
    near = get_close_matches(wrong, [*known], 1)
    return f": did you mean {near[0]}?" if near else ""


def in_table(name: str, settings: Mapping[str, FieldInfo]) -> str:
    """Say in which tables a name belongs that was written as a setting; empty if in none."""
    tables = [
        f'[{setting}."NAME"]' if get_origin(field.annotation) is dict else f"[{setting}]"
        for setting, field in settings.items()
        for kind in get_args(field.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel) and name in kind.model_fields
    ]
    return f": it belongs in {' or '.join(tables)}" if tables else ""


def at_top(name: str, settings: Iterable[str]) -> str:
    """Say where a setting belongs that was written in a table; empty if there is none."""
    return f": {name} belongs above all tables" if name in settings else ""
