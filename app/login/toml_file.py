"""Reads TOML files into models; errors name the line and the place."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from holdfast.login.failures import Unusable
from holdfast.settings.suggestion import did_you_mean

Given = TypeVar("Given", bound=BaseModel)

# Plain words for faults of keys and tables.
_FAULTS = {
    "extra_forbidden": "there is no such key",
    "missing": "this key is missing",
    "model_type": "this must be a table with keys",
}
# How a fault begins that has a place, and what the lines of a file begin with.
_PLACE = re.compile(r"([\w.-]+): ")
_TABLE = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]")
_KEY = re.compile(r"\s*([\w-]+)\s*=")


def read_toml(text: bytes, kind: type[Given]) -> Given:
    """Return the content of a file. Raises `Unusable`, with the line and the place of the error."""
    try:
        return kind.model_validate(tomllib.loads(text.decode()))
    except UnicodeDecodeError:
        raise Unusable("not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise Unusable(f"not TOML: {error}") from None
    except ValidationError as error:
        raise Unusable(located(text, first_fault(error, kind))) from None


def first_fault(error: ValidationError, kind: type[BaseModel] | None = None) -> str:
    """Return the first fault, with its place, and with the key that was meant if `kind` has it."""
    found = error.errors()[0]
    place = ".".join(str(each + 1 if isinstance(each, int) else each) for each in found["loc"])
    text = _FAULTS.get(found["type"], found["msg"])
    if kind is not None and found["type"] == "extra_forbidden":
        *around, wrong = found["loc"]
        text += did_you_mean(str(wrong), _keys(kind, around))
    return f"{place}: {text}" if place else text


def _keys(kind: Any, place: list[int | str]) -> Mapping[str, object]:  # noqa: ANN401 - of any field
    """Return the keys of the table at this place."""
    for each in place:
        if isinstance(each, str):
            given = kind.model_fields[each].annotation
            kind = next(iter(get_args(given)), given)
    fields: Mapping[str, object] = kind.model_fields
    return fields


def located(text: bytes, fault: str) -> str:
    """Return the fault behind the number of its line, if it names a place that the file has."""
    place = _PLACE.match(fault)
    line = place and _line_of(place[1].split("."), text.decode().splitlines())
    return f"line {line}: {fault}" if line else fault


def _line_of(place: list[str], lines: list[str]) -> int:
    """Return the line of a key, or of the table that should have it; 0 if there is neither."""
    table: list[str] = []
    counts = Counter[str]()
    found, depth = 0, 0
    for number, line in enumerate(lines, 1):
        if head := _TABLE.match(line):
            brackets, name = head.groups()
            counts[name] += 1
            table = [*name.split("."), *([str(counts[name])] if brackets == "[[" else [])]
            here = table
        elif key := _KEY.match(line):
            here = [*table, key[1]]
        else:
            continue
        if len(here) > depth and place[: len(here)] == here:
            found, depth = number, len(here)
    return found
