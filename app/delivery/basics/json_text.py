"""Encodes values from outside as JSON, safely.

orjson 3.11 to 3.13 does not reserve space for everything that follows the end of an array or
object. If many nested ones end in a row, it writes past its buffer; eight of them, each followed by
long numbers, were enough. This module encodes such values with Python's own encoder, which is
slower and does not have the bug.

orjson 3.13 also returns an oversized buffer: 75 bytes take 4 KiB, 3 KiB take 32 KiB. Messages may
wait for a long time in large numbers, so they are copied into buffers of exactly their length.
"""

import json
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Collection

# The shallowest value known to overflow has eight levels.
_LEVELS: Final = 5
# As a part of another value, it is nested below further levels.
_LEVELS_OF_PART: Final = 2
_FEW: Final = 32
_NULL: Final = b"null"
_SURE: Final[frozenset[type]] = frozenset({str, int, bool, type(None)})
_SCALARS: Final[frozenset[type]] = _SURE | {float}


def is_deeper(value: object, levels: int) -> bool:
    """Return whether arrays and objects are nested deeper than `levels`."""
    # One stack frame per level: the stack has room for few more levels than a request may have.
    inners: Collection[Any]
    if isinstance(value, dict):
        inners = value.values()
    elif isinstance(value, (list, tuple)):
        inners = value
    else:
        return False
    if levels == 0:
        return True
    # Quick for long lists of scalars.
    if len(inners) > _FEW and _SCALARS.issuperset(map(type, inners)):
        return False
    for inner in inners:
        if isinstance(inner, (list, tuple, dict)) and is_deeper(inner, levels - 1):
            return True
    return False


def is_harmless(value: object) -> bool:
    """Return whether orjson can encode the value safely."""
    return not is_deeper(value, _LEVELS)


def to_json(value: Any) -> bytes:  # noqa: ANN401 - whatever was said
    """Encode the value as JSON. Raises `TypeError` or `ValueError` if that is impossible.

    NaN and infinity become null; clients cannot send them.
    """
    if not is_harmless(value):
        return _written_slowly(value)
    try:
        return b"".join((orjson.dumps(value), b""))
    except orjson.JSONEncodeError:
        # Only extensions produce integers beyond 64 bits. orjson reads them back as doubles.
        text = _written_slowly(value)
        orjson.loads(text)
        return text


class NoNumber(ValueError):
    """NaN or infinity. JSON has no form for them, and null would mean something else."""


def to_strict_json(value: Any) -> bytes:  # noqa: ANN401 - whatever was made
    """Encode a value that an extension produced. Raises `NoNumber` for NaN and infinity."""
    text = to_json(value)
    # NaN and infinity are encoded as null. (`in` would first try to read the bytes as a number.)
    if text.find(_NULL) >= 0 and has_no_number(value):
        raise NoNumber("NaN and infinity have no form in JSON")
    return text


def has_no_number(value: object) -> bool:
    """Return whether a value that orjson can encode contains NaN or infinity."""
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
    """Prepare the value for use inside a larger value that orjson encodes."""
    return orjson.Fragment(to_json(value)) if is_deeper(value, _LEVELS_OF_PART) else value


def whole(value: object) -> int | None:
    """Return the value as an integer, or None. In JSON, 5 and 5.0 are the same.

    Booleans are not numbers.
    """
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    return None
