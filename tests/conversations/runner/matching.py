"""Values of a story against what came over the wire. Exact, unless the story says "..."."""

import json
import re
from collections.abc import Mapping

from tests.conversations.runner.notation import (
    JSON,
    Absent,
    Elements,
    Fields,
    Hole,
    New,
    NotationError,
    Use,
    Value,
)

Names = dict[str, JSON]

LONG_TEXT = re.compile(r"text of (\d+) characters")
RANGE = re.compile(r"(-?\d+) to (-?\d+)")
TEXT_PARTS = re.compile(r"<new \$(?P<new>\w+)>|<text like (?P<like>[^<>]+)>|(?P<any><text>)")
NAMES_IN_TEXT = re.compile(r"\$(\w+)")


class Mismatch(AssertionError):
    """The wire says something else than the story."""

    def __init__(self, path: str, expected: str, actual: str) -> None:
        super().__init__(f"{path or 'it'}: expected {expected}, got {actual}")


def spoken(value: Value, names: Mapping[str, JSON]) -> JSON:
    """What a client of the story sends."""
    match value:
        case Use(name):
            return known(name, names)
        case Fields(members, is_open=False):
            return {
                key: spoken(member, names)
                for key, member in members.items()
                if not isinstance(member, Absent)
            }
        case Elements(items, is_open=False):
            return [spoken(item, names) for item in items]
        case Hole(text) if long_text := LONG_TEXT.fullmatch(text):
            return "x" * int(long_text[1])
        case None | bool() | int() | float() | str():
            return value
        case _:
            pass
    raise NotationError(f"{shown(value, names)} can be heard but not said")


def expect(value: Value, actual: JSON, names: Names, path: str = "") -> None:
    """Raise `Mismatch` unless the actual value is as written; new names are learned."""
    match value:
        case New(name):
            names[name] = actual
        case Fields():
            expect_fields(value, actual, names, path)
        case Elements():
            expect_elements(value, actual, names, path)
        case Hole(text):
            if not fills(text, actual):
                raise Mismatch(path, f"<{text}>", short(actual))
        case _:
            exact = spoken(value, names)
            if not is_same(exact, actual):
                raise Mismatch(path, short(exact), short(actual))


def expect_fields(value: Fields, actual: JSON, names: Names, path: str) -> None:
    if not isinstance(actual, dict):
        raise Mismatch(path, "an object", short(actual))
    for key, member in value.members.items():
        if isinstance(member, Absent):
            if key in actual:
                raise Mismatch(f"{path}.{key}", "no such field", short(actual[key]))
        elif key not in actual:
            raise Mismatch(f"{path}.{key}", shown(member, names), "nothing")
        else:
            expect(member, actual[key], names, f"{path}.{key}")
    surplus = [key for key in actual if key not in value.members]
    if surplus and not value.is_open:
        raise Mismatch(f"{path}.{surplus[0]}", "no such field", short(actual[surplus[0]]))


def expect_elements(value: Elements, actual: JSON, names: Names, path: str) -> None:
    if not isinstance(actual, list):
        raise Mismatch(path, "an array", short(actual))
    if len(actual) < len(value.items) or (len(actual) > len(value.items) and not value.is_open):
        raise Mismatch(path, f"{len(value.items)} elements", short(actual))
    for at, (item, element) in enumerate(zip(value.items, actual, strict=False)):
        expect(item, element, names, f"{path}[{at}]")


def expect_text(pattern: str, actual: str, names: Names, path: str = "") -> None:
    """Compare text of a header or body; it may have `$name`, `<text>`, `<text like ...>`."""
    expression, at = "", 0
    for part in TEXT_PARTS.finditer(pattern):
        expression += re.escape(filled_in(pattern[at : part.start()], names))
        if part["new"]:
            expression += f"(?P<{part['new']}>.*?)"
        else:
            expression += f"(?:{part['like'] or '.*'})"
        at = part.end()
    expression += re.escape(filled_in(pattern[at:], names))
    found = re.fullmatch(expression, actual, re.DOTALL)
    if found is None:
        raise Mismatch(path, pattern, short(actual))
    names.update(found.groupdict())


def filled_in(text: str, names: Mapping[str, JSON]) -> str:
    """Text with every `$name` replaced, for bodies that are not JSON."""
    return NAMES_IN_TEXT.sub(lambda found: str(known(found[1], names)), text)


def known(name: str, names: Mapping[str, JSON]) -> JSON:
    if name not in names:
        raise NotationError(f"${name} is not known yet")
    return names[name]


def fills(hole: str, actual: JSON) -> bool:
    if hole == "any":
        return True
    if hole == "text":
        return isinstance(actual, str)
    if hole == "integer":
        return isinstance(actual, int) and not isinstance(actual, bool)
    if hole.startswith("text like "):
        return isinstance(actual, str) and bool(re.fullmatch(hole[10:], actual))
    if long_text := LONG_TEXT.fullmatch(hole):
        return isinstance(actual, str) and len(actual) == int(long_text[1])
    if bounds := RANGE.fullmatch(hole):
        is_number = isinstance(actual, int | float) and not isinstance(actual, bool)
        return is_number and int(bounds[1]) <= actual <= int(bounds[2])  # type: ignore[operator]
    raise NotationError(f"<{hole}> is no hole that this runner knows")


def is_same(expected: JSON, actual: JSON) -> bool:
    """Equality of JSON: true is not 1, and 1.0 is not 1."""
    return type(expected) is type(actual) and dumped(expected) == dumped(actual)


def dumped(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def short(value: JSON) -> str:
    text = dumped(value)
    return text if len(text) <= 300 else f"{text[:280]}... ({len(text)} characters)"


def shown(value: Value, names: Mapping[str, JSON]) -> str:
    """A value of a story as a reader of a failure wants to see it."""
    match value:
        case Use(name):
            return short(names[name]) if name in names else f"${name}"
        case New(name):
            return f"new ${name}"
        case Hole(text):
            return f"<{text}>"
        case Absent():
            return "absent"
        case Elements(items, is_open):
            inner = [shown(item, names) for item in items] + ["..."] * is_open
            return f"[{', '.join(inner)}]"
        case Fields(members, is_open):
            inner = [f'"{key}": {shown(member, names)}' for key, member in members.items()]
            return f"{{{', '.join(inner + ['...'] * is_open)}}}"
        case _:
            return short(value)
