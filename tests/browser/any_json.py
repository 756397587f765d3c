"""JSON that any client may publish where a page expects data in its own form."""

from random import Random
from typing import Any

# Names that every object in JavaScript has.
PROTOTYPE = (
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
)
_MEMBERS = ("id", "from", "text", "to", "name", "rooms", "members", "pieces", "length", "toJSON")
_ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1.5,
    1e308,
    "",
    "text",
    "<img src=x onerror='window.hacked = 1'>",
    "😀" * 20,
    "x" * 100_000,
    [],
    [[]],
    [None],
    {},
    {"toString": 1, "valueOf": None},
    {"then": "now"},
    dict.fromkeys(PROTOTYPE, 7),
)


def values(seed: int, count: int) -> list[Any]:
    """All odd values, each of them in each member, and random ones."""
    random = Random(seed)
    members = [
        {"id": "1", "from": "eve", "text": "hello", name: odd} for name in _MEMBERS for odd in _ODD
    ]
    return [*_ODD, _deep(60), *members, *(_value(random, 0) for _ in range(count))]


def _value(random: Random, depth: int) -> Any:
    kind = random.randrange(4 if depth < 4 else 1)
    if kind < 2:
        return random.choice(_ODD)
    if kind == 2:
        return [_value(random, depth + 1) for _ in range(random.randrange(4))]
    names = random.sample((*_MEMBERS, *PROTOTYPE), random.randrange(5))
    return {name: _value(random, depth + 1) for name in names}


def _deep(depth: int) -> Any:
    return [_deep(depth - 1)] if depth else {"text": []}
