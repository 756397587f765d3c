"""Serials: the numbers of requests as xMsg writes them, a digit for the language and six more."""

from typing import Final

# The first digit: the language that chose the number; 5 to 8 are free.
JAVA: Final = 1
CPP: Final = 2
PYTHON: Final = 3
JAVASCRIPT: Final = 4
SERVER: Final = 9

_COUNT: Final = 1_000_000
_MASK: Final = 0xFFFFFFFF


class Serials:
    """Counts from a chosen or random number on; after 999999 comes 0.

    Like xMsg's, the counter has 32 bits: when it overflows, the numbers jump once.
    """

    def __init__(self, language: int, counter: int = 0) -> None:
        self._language = language
        self._counter = counter

    def next(self) -> int:
        """Return the next number."""
        number = self._counter & _MASK
        self._counter += 1
        return self._language * _COUNT + number % _COUNT
