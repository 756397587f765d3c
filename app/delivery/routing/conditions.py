"""Conditions on a message, built from terms: the parts of a filter.

Each condition is a function of the message's fields and never fails. As in SQL, a value that is
missing, null or of the wrong type is unknown (None), and so is any result that depends on it.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ne
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import re2

Fields = Mapping[str, Any]
Term = Callable[[Fields], Any]
Condition = Callable[[Fields], bool | None]

# The value of a longer text is unknown, so that every message is quick to test. The first limit is
# for patterns, which take up to 50 ns for a character; the second for all other conditions.
LONGEST_FOR_PATTERN = 1024
LONGEST_TEXT = 4096
# Booleans are not numbers here; in Python, True equals 1.
_NUMBERS: Final = (int, float)


def constant(value: object) -> Term:
    return lambda fields: value


def field(names: tuple[str, ...]) -> Term:
    def read(fields: Fields) -> Any:  # noqa: ANN401 - whatever the message has
        found: Any = fields
        for name in names:
            if not isinstance(found, dict):
                return None
            found = found.get(name)
        return found

    return read


def length(term: Term) -> Term:
    def read(fields: Fields) -> int | None:
        found = term(fields)
        return len(found) if isinstance(found, str | list) else None

    return read


def calculation(operator: Callable[[Any, Any], Any], left: Term, right: Term) -> Term:
    def read(fields: Fields) -> Any:  # noqa: ANN401 - a number
        one, other = left(fields), right(fields)
        if type(one) not in _NUMBERS or type(other) not in _NUMBERS:
            return None
        try:
            return operator(one, other)
        except ArithmeticError:
            return None

    return read


def comparison(operator: Callable[[Any, Any], bool], left: Term, right: Term) -> Condition:
    def test(fields: Fields) -> bool | None:
        one, other = left(fields), right(fields)
        kind = type(one)
        if kind is type(other):
            if kind is str:
                is_known = len(one) <= LONGEST_TEXT and len(other) <= LONGEST_TEXT
            else:
                # Booleans have no order.
                is_known = kind in _NUMBERS or (kind is bool and (operator is eq or operator is ne))
        else:
            is_known = kind in _NUMBERS and type(other) in _NUMBERS
        return operator(one, other) if is_known else None

    return test


def is_known(term: Term) -> Condition:
    return lambda fields: term(fields) is not None


def flag(term: Term) -> Condition:
    def test(fields: Fields) -> bool | None:
        found = term(fields)
        return found if type(found) is bool else None

    return test


def search(term: Term, pattern: "re2.Set") -> Condition:
    def test(fields: Fields) -> bool | None:
        text = term(fields)
        if type(text) is not str or len(text) > LONGEST_FOR_PATTERN:
            return None
        # `Match` would encode it too, but more slowly.
        return pattern.Match(text.encode()) is not None

    return test


def sequence(term: Term, parts: Sequence[str]) -> Condition:
    """Return whether a text consists of these parts, with any text between them."""
    first, *inner, last = parts

    def test(fields: Fields) -> bool | None:
        text = term(fields)
        if type(text) is not str or len(text) > LONGEST_TEXT:
            return None
        if not (text.startswith(first) and text.endswith(last)):
            return False
        place, end = len(first), len(text) - len(last)
        for part in inner:
            place = text.find(part, place, end)
            if place < 0:
                return False
            place += len(part)
        return place <= end

    return test


def negation(condition: Condition) -> Condition:
    def test(fields: Fields) -> bool | None:
        found = condition(fields)
        return None if found is None else not found

    return test


def first_of(conditions: Sequence[Condition], *, wanted: bool) -> Condition:
    """Return the OR of the conditions if `wanted` is True, their AND if it is False."""
    if len(conditions) == 1:
        return conditions[0]

    def test(fields: Fields) -> bool | None:
        answer: bool | None = not wanted
        for condition in conditions:
            found = condition(fields)
            if found is wanted:
                return wanted
            if found is None:
                answer = None
        return answer

    return test
