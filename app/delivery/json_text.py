"""JSON of what others said, written without harm.

orjson does not reserve room for everything that stands behind the end of an array or an object, as
far as versions 3.11 to 3.13 go: where many that are within each other end one after the other it
writes beyond the end of its memory. Eight of them with long numbers behind each were enough. What
is nested like that is written by Python's own module, which takes longer and has no such fault.

As of 3.13 it does not give back either what it reserved: 75 bytes hold 4 KiB, 3 KiB hold 32. What
is written here may wait for long, and by the thousand, so it is copied to where it fits.
"""

import json
from collections.abc import Collection
from dataclasses import fields, is_dataclass
from typing import Any

import orjson

# The least that was seen to do harm has eight.
_LEVELS = 5
# What is a part of something else has others around it.
_LEVELS_OF_PART = 2
_FEW = 32
_NULL = b"null"
_SURE: frozenset[type] = frozenset({str, int, bool, type(None)})
_SCALARS: frozenset[type] = _SURE | {float}


def is_deeper(value: object, levels: int) -> bool:
    """Whether more arrays and objects than these are within each other."""
    # One frame for each level: Python has room for few more than a request may have levels.
    inners: Collection[Any]
    if isinstance(value, dict):
        inners = value.values()
    elif isinstance(value, (list, tuple)):
        inners = value
    else:
        return False
    if levels == 0:
        return True
    if _is_flat(inners):
        return False
    for inner in inners:
        if isinstance(inner, (list, tuple, dict)) and is_deeper(inner, levels - 1):
            return True
    return False


def _is_flat(values: Collection[Any]) -> bool:
    """Whether there is certainly nothing within these: soon seen, and mostly so of many."""
    return len(values) > _FEW and _SCALARS.issuperset(map(type, values))


def is_harmless(value: object) -> bool:
    """Whether orjson can write it."""
    return not is_deeper(value, _LEVELS)


def to_json(value: Any) -> bytes:  # noqa: ANN401 - whatever was said
    """The value as JSON that orjson reads; raises `TypeError` or `ValueError` if it has none.

    NaN and infinity, which no client can say, become null.
    """
    if not is_harmless(value):
        return _written_slowly(value)
    try:
        return b"".join((orjson.dumps(value), b""))
    except orjson.JSONEncodeError:
        # Of an extension: integers beyond 64 bits are read as doubles, beyond those not at all.
        text = _written_slowly(value)
        orjson.loads(text)
        return text


class NoNumber(ValueError):
    """NaN, or infinity: JSON has no form for it, and null is something else."""


def to_strict_json(value: Any) -> bytes:  # noqa: ANN401 - whatever was made
    """The same of what an extension may have made; NaN and infinity raise `NoNumber`."""
    text = to_json(value)
    # There is none without its trace.
    if _NULL in text and has_no_number(value):
        raise NoNumber("NaN and infinity have no form in JSON")
    return text


def has_no_number(value: object) -> bool:
    """Whether there is NaN or infinity in a value that orjson can write."""
    rest: list[Any] = [value]
    while rest:
        outer = rest.pop()
        if isinstance(outer, float):
            if outer - outer != 0.0:
                return True
        elif isinstance(outer, dict):
            rest += [each for each in outer.values() if type(each) not in _SURE]
        elif isinstance(outer, (list, tuple)):
            rest += [each for each in outer if type(each) not in _SURE]
        elif is_dataclass(outer) and not isinstance(outer, type):
            rest += [getattr(outer, each.name) for each in fields(outer)]
    return False


def _written_slowly(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def part(value: Any) -> Any:  # noqa: ANN401 - whatever was said
    """The value as a part of something that orjson writes."""
    return orjson.Fragment(to_json(value)) if is_deeper(value, _LEVELS_OF_PART) else value
