"""Reads TOML files into models; errors name the place."""

import tomllib
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from holdfast.login.failures import Unusable

Given = TypeVar("Given", bound=BaseModel)

# Plain words for faults of keys and tables.
_FAULTS = {
    "extra_forbidden": "there is no such key",
    "missing": "this key is missing",
    "model_type": "this must be a table with keys",
}


def read_toml(text: bytes, kind: type[Given]) -> Given:
    """Return the content of a file. Raises `Unusable`, with the place of the error."""
    try:
        return kind.model_validate(tomllib.loads(text.decode()))
    except UnicodeDecodeError:
        raise Unusable("not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise Unusable(f"not TOML: {error}") from None
    except ValidationError as error:
        raise Unusable(first_fault(error)) from None


def first_fault(error: ValidationError) -> str:
    """Return the first fault, with its place."""
    found = error.errors()[0]
    place = ".".join(str(each + 1 if isinstance(each, int) else each) for each in found["loc"])
    text = _FAULTS.get(found["type"], found["msg"])
    return f"{place}: {text}" if place else text
