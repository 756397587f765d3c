"""Units of settings, values in larger units, and numbers of things."""

from collections.abc import Iterable
from enum import Enum

_SECOND = 1000


class Unit(Enum):
    """The unit of a number, with larger units that are easier to read, the largest first."""

    MS = (
        (24 * 3600 * _SECOND, "d"),
        (3600 * _SECOND, "h"),
        (60 * _SECOND, "min"),
        (_SECOND, "s"),
    )
    BYTES = ((1024**2, "MiB"), (1024, "KiB"))
    SECONDS = ()

    def readable(self, value: int) -> str | None:
        """Return the value in the largest unit that divides it; None if there is none."""
        found = ((size, name) for size, name in self.value if value and value % size == 0)
        return next((f"{value // size} {name}" for size, name in found), None)


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number of things: 1 message, 2,000 messages; `several` is a plural without -s."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def unit_of(metadata: Iterable[object]) -> Unit | None:
    """Return the unit in the metadata of a field."""
    return next((each for each in metadata if isinstance(each, Unit)), None)
