"""Units of settings, forms of values in tables, numbers of things, and times of day."""

from collections.abc import Iterable
from datetime import datetime
from enum import Enum, StrEnum

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


class Form(StrEnum):
    """How people write the values of a column."""

    TEXT = "text"
    CHANNEL = "channel"
    # The channel of a work queue.
    WORK = "work"
    SESSION = "session"
    # A queue that exists: of a session, of a subject (`joe/0`), or of work (`work:/jobs/0`).
    RECEIVER = "receiver"
    STATE = "state"
    # Why something is held back, by whom and since when.
    HOLD = "hold"
    FLAG = "flag"
    # The id of a message, as `holdfast message` takes it.
    MESSAGE = "message"
    CODE = "code"
    FINGERPRINT = "fingerprint"
    TIME = "time"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    COUNT = "count"
    NUMBER = "number"
    BYTES = "bytes"
    # Milliseconds.
    MS = "ms"
    # A part of one, in percent.
    SHARE = "share"


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number of things: 1 message, 2,000 messages; `several` is a plural without -s."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def clock_time(ms: int, now_ms: int) -> str:
    """Return the time of day here, with the date unless it is today."""
    moment, today = (datetime.fromtimestamp(each / 1000).astimezone() for each in (ms, now_ms))
    date = "" if moment.date() == today.date() else "%Y-%m-%d "
    return moment.strftime(f"{date}%H:%M %Z")


def unit_of(metadata: Iterable[object]) -> Unit | None:
    """Return the unit in the metadata of a field."""
    return next((each for each in metadata if isinstance(each, Unit)), None)
