"""The language of subscription filters: conditions on one message, written as in SQL-92.

    data.price > 100 AND properties.kind IN ('bid', 'ask') AND NOT data.text LIKE '%test%'

LIKE and MATCHES search in linear time, because RE2 runs the patterns.
"""

import re
from collections.abc import Callable, Mapping
from operator import add, eq, ge, gt, le, lt, mul, ne, sub, truediv
from typing import Any, Final

import re2

from holdfast.delivery.routing.conditions import (
    Condition,
    Term,
    calculation,
    comparison,
    constant,
    field,
    first_of,
    flag,
    is_known,
    length,
    negation,
    search,
    sequence,
)

# The names with which a field in a filter may begin.
ROOTS: Final = ("channel", "data", "priority", "properties", "sender")

_LONGEST_FILTER = 1000
_MOST_TERMS = 100
_DEEPEST = 20
_MOST_PATTERNS = 2
_PATTERN_MEMORY = 128 * 1024

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number> (?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]) )
      | (?P<text> '(?:[^']|'')*' )
      | (?P<name> [A-Za-z_]\w* | "[^"]+" )
      | (?P<sign> <> | != | <= | >= | [=<>+\-*/(),.] )
    )""",
    re.VERBOSE | re.ASCII,
)
_KEYWORDS = frozenset(
    {"AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LENGTH", "LIKE", "MATCHES", "NOT", "NULL"}
    | {"OR", "TRUE"}
)
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": eq,
    "<>": ne,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_ARITHMETIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
}


class FilterInvalid(Exception):
    """The text is not a filter. The message says what is wrong, and where."""


def parse(text: str) -> Condition:
    """Parse the text. Raises `FilterInvalid`."""
    if len(text) > _LONGEST_FILTER:
        raise FilterInvalid(f"a filter has at most {_LONGEST_FILTER} characters")
    return _Parser(text).whole()


class _Parser:
    """Parses one filter. Each method parses the construct that it is named after."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._terms = 0
        self._patterns = 0
        self._depth = 0
        self._kind: str | None = ""
        # The next token: keywords and signs in the form in which they are compared, texts unquoted.
        self._next: Any = None
        self._advance()

    def whole(self) -> Condition:
        found = self._any_of()
        if self._kind is not None:
            raise self._error("the end of the filter is expected")
        return found

    # Tokens

    def _advance(self) -> Any:  # noqa: ANN401 - a text or a number
        """Return the next token and read the one after it."""
        taken = self._next
        self._begin = self._end
        found = _TOKEN.match(self._text, self._end)
        if found is None:
            if self._text[self._end :].strip():
                raise self._error("this cannot be read")
            self._kind = self._next = None
            return taken
        self._end = found.end()
        kind = self._kind = found.lastgroup
        token = found[kind or 0]
        if kind == "number":
            self._next = float(token) if re.search(r"[.eE]", token) else int(token)
        elif kind == "text":
            self._next = token[1:-1].replace("''", "'")
        elif kind == "name" and token.upper() in _KEYWORDS:
            self._kind, self._next = "keyword", token.upper()
        else:
            self._next = token.strip('"')
        return taken

    def _takes(self, *tokens: str) -> str | None:
        """Consume the next token if it is one of these keywords or signs; otherwise return None."""
        if self._kind in ("keyword", "sign") and self._next in tokens:
            return str(self._advance())
        return None

    def _expect(self, token: str) -> None:
        if self._takes(token) is None:
            raise self._error(f"{token} is missing")

    def _constant(self, kind: str, what: str) -> Any:  # noqa: ANN401 - a text or a number
        if self._kind != kind:
            raise self._error(f"{what} is missing")
        return self._advance()

    def _error(self, what: str) -> FilterInvalid:
        return FilterInvalid(f"{what} at character {self._begin + 1} of the filter")

    def _count(self) -> None:
        self._terms += 1
        if self._terms > _MOST_TERMS:
            raise FilterInvalid(f"a filter has at most {_MOST_TERMS} terms")

    # Conditions

    def _any_of(self) -> Condition:
        if self._depth > _DEEPEST:
            raise FilterInvalid(f"parentheses are nested at most {_DEEPEST} deep")
        self._depth += 1
        parts = [self._all_of()]
        while self._takes("OR"):
            parts.append(self._all_of())
        self._depth -= 1
        return first_of(parts, wanted=True)

    def _all_of(self) -> Condition:
        parts = [self._negation()]
        while self._takes("AND"):
            parts.append(self._negation())
        return first_of(parts, wanted=False)

    def _negation(self) -> Condition:
        is_negative = False
        while self._takes("NOT"):
            is_negative = not is_negative
        found = self._predicate()
        return negation(found) if is_negative else found

    def _predicate(self) -> Condition:
        if self._next == "(" and self._kind == "sign":
            return self._parenthesis()
        return self._comparison(self._sum())

    def _parenthesis(self) -> Condition:
        """Parse `(…)`: a condition, or the beginning of a term such as `(data.a + 1) * 2 > 5`."""
        before = (self._begin, self._end, self._terms, self._kind, self._next)
        self._advance()
        found = self._any_of()
        self._expect(")")
        is_term = self._next in _COMPARISONS or self._next in _ARITHMETIC
        if is_term and self._kind == "sign":
            self._begin, self._end, self._terms, self._kind, self._next = before
            return self._comparison(self._sum())
        return found

    def _comparison(self, term: Term) -> Condition:
        sign = self._takes(*_COMPARISONS)
        if sign is not None:
            return comparison(_COMPARISONS[sign], term, self._sum())
        if self._takes("IS"):
            is_negative = self._takes("NOT") is not None
            self._expect("NULL")
            return is_known(term) if is_negative else negation(is_known(term))
        is_negative = self._takes("NOT") is not None
        found = self._membership(term)
        if found is None:
            if is_negative:
                raise self._error("BETWEEN, IN, LIKE or MATCHES is missing")
            return flag(term)
        return negation(found) if is_negative else found

    def _membership(self, term: Term) -> Condition | None:
        if self._takes("BETWEEN"):
            least = self._sum()
            self._expect("AND")
            bounds = [comparison(ge, term, least), comparison(le, term, self._sum())]
            return first_of(bounds, wanted=False)
        if self._takes("IN"):
            return self._list(term)
        if self._takes("LIKE"):
            return self._like(term)
        if self._takes("MATCHES"):
            return search(term, self._pattern(self._constant("text", "a pattern")))
        return None

    def _list(self, term: Term) -> Condition:
        self._expect("(")
        parts = [comparison(eq, term, self._primary())]
        while self._takes(","):
            parts.append(comparison(eq, term, self._primary()))
        self._expect(")")
        return first_of(parts, wanted=True)

    def _like(self, term: Term) -> Condition:
        """Parse the pattern of LIKE: % matches any text, _ one character."""
        text = str(self._constant("text", "a pattern"))
        escape = str(self._constant("text", "a character")) if self._takes("ESCAPE") else ""
        if len(escape) > 1:
            raise self._error("ESCAPE takes one character")
        parts, pattern, needs_pattern, is_escaped = [""], "", False, False
        for character in text:
            if not is_escaped and character == escape:
                is_escaped = True
                continue
            if is_escaped or character not in "%_":
                parts[-1] += character
                pattern += re2.escape(character)
            elif character == "%":
                parts.append("")
                pattern += ".*"
            else:
                needs_pattern = True
                pattern += "."
            is_escaped = False
        if needs_pattern:
            return search(term, self._pattern(f"(?s)^{pattern}$"))
        if len(parts) == 1:
            return comparison(eq, term, constant(parts[0]))
        return sequence(term, parts)

    def _pattern(self, pattern: str) -> "re2.Set":
        """Compile a pattern. Matching takes time proportional to the length of the text."""
        self._patterns += 1
        if self._patterns > _MOST_PATTERNS:
            raise FilterInvalid(f"a filter has at most {_MOST_PATTERNS} patterns with MATCHES or _")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _PATTERN_MEMORY
        found = re2.Set.SearchSet(options)
        try:
            found.Add(pattern)
            found.Compile()
        except re2.error:
            reason = "this regular expression is too large or not valid in RE2"
            raise self._error(reason) from None
        return found

    # Terms

    def _sum(self) -> Term:
        found = self._product()
        while (sign := self._takes("+", "-")) is not None:
            found = calculation(_ARITHMETIC[sign], found, self._product())
        return found

    def _product(self) -> Term:
        found = self._primary()
        while (sign := self._takes("*", "/")) is not None:
            found = calculation(_ARITHMETIC[sign], found, self._primary())
        return found

    def _primary(self) -> Term:
        self._count()
        sign = self._takes("+", "-", "(", "TRUE", "FALSE", "LENGTH")
        if sign == "(":
            found = self._sum()
            self._expect(")")
            return found
        if sign in ("+", "-"):
            return calculation(_ARITHMETIC[sign], constant(0), self._primary())
        if sign == "LENGTH":
            self._expect("(")
            found = length(self._sum())
            self._expect(")")
            return found
        if sign is not None:
            return constant(sign == "TRUE")
        if self._kind in ("number", "text"):
            return constant(self._advance())
        return self._field()

    def _field(self) -> Term:
        if self._kind != "name":
            is_doubled = self._kind == "sign" and self._next == "="
            what = "write = instead of ==" if is_doubled else "a field or a value is missing"
            raise self._error(what)
        if self._next not in ROOTS:
            raise self._error(f"a field begins with {' or '.join(ROOTS)}")
        names = [self._advance()]
        while self._takes("."):
            if self._kind not in ("name", "keyword"):
                raise self._error("a name is missing")
            # A keyword may be a field name, with the case in which it is written.
            written = self._text[self._begin : self._end].strip().strip('"')
            self._advance()
            names.append(written)
        return field(tuple(names))
