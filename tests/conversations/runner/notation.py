"""How stories write JSON: plain JSON with names, holes and "..." for "whatever else".

{"clientId": $alice}        the value that was named alice earlier
{"clientId": new $alice}    any value, from now on named alice
{"interval": <0 to 5000>}   a hole: <any>, <text>, <integer>, <0 to 5000>,
                            <text like REGEX>, <text of 70 characters>
{"data": 1, ...}            other fields are allowed
["a", ...]                  other elements may follow
{"clientId": absent}        no such field
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]


class NotationError(ValueError):
    """A story is written wrongly."""


@dataclass(frozen=True, slots=True)
class Use:
    name: str


@dataclass(frozen=True, slots=True)
class New:
    name: str


@dataclass(frozen=True, slots=True)
class Hole:
    text: str


@dataclass(frozen=True, slots=True)
class Absent:
    pass


@dataclass(frozen=True, slots=True)
class Elements:
    items: tuple["Value", ...]
    is_open: bool


@dataclass(frozen=True, slots=True)
class Fields:
    members: dict[str, "Value"]
    is_open: bool

    def over(self, defaults: dict[str, "Value"]) -> "Fields":
        """These fields, and the defaults for those that are not named here."""
        return Fields({**defaults, **self.members}, self.is_open)


Value = None | bool | int | float | str | Use | New | Hole | Absent | Elements | Fields

NO_FIELDS = Fields({}, is_open=False)

TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<rest>\.\.\.)
      | (?P<new>new\s+\$\w+)
      | (?P<use>\$\w+)
      | (?P<hole><[^<>]+>)
      | (?P<word>true|false|null|absent)\b
      | (?P<mark>[{}\[\],:])
    )""",
    re.VERBOSE,
)
WORDS: dict[str, Value] = {"true": True, "false": False, "null": None, "absent": Absent()}


def parse_value(text: str) -> Value:
    """The one value that the text holds."""
    parser = Parser(text)
    value = parser.value()
    parser.expect_end()
    return value


def parse_fields(text: str) -> Fields:
    value = parse_value(text)
    if not isinstance(value, Fields):
        raise NotationError(f"an object was expected: {text}")
    return value


def is_unfinished(text: str) -> bool:
    """Whether brackets are still open, so that the next line of the story belongs to it."""
    depth = 0
    for kind, token in tokens(text, strict=False):
        if kind == "mark":
            depth += (token in "{[") - (token in "}]")
    return depth > 0


def tokens(text: str, *, strict: bool = True) -> Iterator[tuple[str, str]]:
    at = 0
    while text[at:].strip():
        found = TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            if strict:
                raise NotationError(f"cannot read {text[at:].strip()!r}")
            at += 1
            continue
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()


class Parser:
    """Recursive descent over the tokens of one value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [*tokens(text), ("end", "")]
        self._at = 0

    def value(self) -> Value:
        kind, token = self._take()
        match kind:
            case "string" | "number":
                scalar: Value = json.loads(token)
                return scalar
            case "word":
                return WORDS[token]
            case "use":
                return Use(token[1:])
            case "new":
                return New(token.split("$")[1])
            case "hole":
                return Hole(token[1:-1])
            case _:
                pass
        if token == "{":
            return self._fields()
        if token == "[":
            return self._elements()
        self._fail(token)

    def expect_end(self) -> None:
        kind, token = self._take()
        if kind != "end":
            self._fail(token)

    def _fields(self) -> Fields:
        members: dict[str, Value] = {}
        while (token := self._take()) != ("mark", "}"):
            kind, text = token
            if kind == "rest":
                self._close("}")
                return Fields(members, is_open=True)
            if kind != "string" or self._take() != ("mark", ":"):
                self._fail(text)
            members[json.loads(text)] = self.value()
            self._separate("}")
        return Fields(members, is_open=False)

    def _elements(self) -> Elements:
        items: list[Value] = []
        while self._peek() != ("mark", "]"):
            if self._peek()[0] == "rest":
                self._take()
                self._close("]")
                return Elements(tuple(items), is_open=True)
            items.append(self.value())
            self._separate("]")
        self._take()
        return Elements(tuple(items), is_open=False)

    def _separate(self, end: str) -> None:
        if self._peek() == ("mark", ","):
            self._take()
        elif self._peek() != ("mark", end):
            self._fail(self._peek()[1])

    def _close(self, end: str) -> None:
        kind, token = self._take()
        if (kind, token) != ("mark", end):
            self._fail(token)

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at]

    def _take(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _fail(self, token: str) -> NoReturn:
        raise NotationError(f"{token or 'the end'!r} is unexpected in {self._text.strip()}")
