"""JSON of what others said, written without harm.

orjson reserves room for what it writes, but not for what stands behind an array that has ended, as
far as versions 3.11 to 3.13 go: many arrays within each other that end one after the other are
written beyond the end of its memory. Ten of them with a long number behind each were enough. What
is nested like that is written by Python's own module, which takes longer and has no such fault.
"""

import json
from typing import Any

import orjson

# Half of what can do harm: who writes may put a value into some arrays and objects of its own.
_ARRAYS = 5
_LEVELS = 32


def is_deeper(value: object, levels: int, arrays: int) -> bool:
    """Whether there are more arrays and objects, or more arrays, within each other than these."""
    if isinstance(value, list):
        if levels == 0 or arrays == 0:
            return True
        for inner in value:
            if isinstance(inner, (list, dict)) and is_deeper(inner, levels - 1, arrays - 1):
                return True
    elif isinstance(value, dict):
        if levels == 0:
            return True
        for inner in value.values():
            if isinstance(inner, (list, dict)) and is_deeper(inner, levels - 1, arrays):
                return True
    return False


def is_harmless(value: object) -> bool:
    """Whether orjson can write it, also as a part of something else."""
    return not is_deeper(value, _LEVELS, _ARRAYS)


def to_json(value: Any) -> bytes:  # noqa: ANN401 - whatever was said
    """The value as JSON; raises `TypeError` or `ValueError` if it has none."""
    if is_harmless(value):
        try:
            return orjson.dumps(value)
        except orjson.JSONEncodeError:
            # What else it cannot write, as integers beyond 64 bits of an extension.
            pass
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
