"""Suggests a name that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return a question that follows an error about a name; empty if no known name is similar."""
    near = get_close_matches(wrong, [*known], 1)
    return f": did you mean {near[0]}?" if near else ""
