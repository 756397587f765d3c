"""The scope of reports and audits: all tables, or a time, a channel, a receiver.

A scope selects messages by the time of their publish, with all events about them, whatever their
times. It selects other events by their own time.
"""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Self

_NS_PER_US = 1000
_US_PER_MS = 1000
_MS_PER_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Scope:
    """Conditions, all of which must hold: ms since 1970, and names."""

    since: int | None = None
    until: int | None = None
    channel: str | None = None
    receiver: str | None = None

    @property
    def is_everything(self) -> bool:
        return self == EVERYTHING

    @property
    def has_names(self) -> bool:
        """Whether the scope has a part of the messages of its time."""
        return self.channel is not None or self.receiver is not None

    @classmethod
    def of_day(cls, day: int) -> Self:
        """Return the scope of a day, counted since 1970."""
        return cls(day * _MS_PER_DAY, (day + 1) * _MS_PER_DAY)

    def within(self, day: "Scope") -> "Scope | None":
        """Return the part of the scope within a day."""
        since, until = (day.since or 0, day.until or 0)
        if self.since is not None:
            since = max(since, self.since)
        if self.until is not None:
            until = min(until, self.until)
        return replace(self, since=since, until=until) if since < until else None

    @property
    def first_day(self) -> date | None:
        """The first day with events of the scope; there is no last one, as events may come late."""
        return None if self.since is None else _day(self.since)

    @property
    def times(self) -> str:
        """The condition on the time of an event."""
        return self._between("unix_micros(ts)", _US_PER_MS)

    @property
    def messages(self) -> str:
        """The condition on a message's id."""
        return self._between("msg", _US_PER_MS * _NS_PER_US)

    @property
    def overlap(self) -> str:
        """Return the condition that a period, from `since` to `until`, overlaps the scope."""
        first, last = (f"unix_micros({name}) / {_US_PER_MS}" for name in ("until", "since"))
        is_late = [] if self.since is None else [f"coalesce({first} >= {self.since}, true)"]
        is_soon = [] if self.until is None else [f"coalesce({last} < {self.until}, true)"]
        return " and ".join([*is_late, *is_soon]) or "true"

    def _between(self, number: str, unit: int) -> str:
        least = [] if self.since is None else [f"{number} >= {self.since * unit}"]
        most = [] if self.until is None else [f"{number} < {self.until * unit}"]
        return " and ".join([*least, *most]) or "true"


EVERYTHING = Scope()


def _day(ms: int) -> date:
    return (_EPOCH + timedelta(milliseconds=ms)).date()
