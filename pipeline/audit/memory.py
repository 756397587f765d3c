"""Remembers the ledger of each day of events, and the days of messages that were found clean."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from holdfast.pipeline.audit.coverage import OVER, Unknown
from holdfast.pipeline.audit.ledger import ledger_of
from holdfast.pipeline.copies import DAY_NS
from holdfast.pipeline.lake import EVENTS, TABLES, Lake
from holdfast.pipeline.reports.memory import (
    EVENT_DAY,
    MESSAGE_DAY,
    Memory,
    by_day,
    keep_each,
    place_of,
    together,
)
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.table_files import File, paths_of

_LEDGER, _DAYS, _REPORTED = "ledger", "days.json", "reported.json"
_EPOCH = date(1970, 1, 1)
_SCHEMA = ", ".join(TABLES[EVENTS])


class AuditMemory(Memory):
    """Keeps, for each day of events, their ledger and the days of their messages."""

    def __init__(self, place: Path, files: Mapping[str, Sequence[File]]) -> None:
        self._files = files
        self._rows = {day: sum(file.rows for file in files[day]) for day in files}
        super().__init__(place, {day: paths_of(files[day]) for day in files})

    def read(self, tables: Tables) -> Iterator[int]:
        """Read the days that were not read yet; yield the number of those that are next."""
        for days in together({day: self._rows[day] for day in self.unread}):
            yield len(days)
            files = [path for day in days for path in paths_of(self._files[day])]
            tables.add_files("read_events", files, _SCHEMA)
            with self.writing(days) as drafts:
                keep_each(tables, ledger_of("read_events", EVENT_DAY), _LEDGER, drafts)
                found: dict[str, list[int]] = {day: [] for day in days}
                question = f"select distinct {EVENT_DAY}, {MESSAGE_DAY} from {{read_events}}"
                for day, messages in tables.ask(f"{question} where msg is not null").rows:
                    found[day].append(messages)
                for day, draft in drafts.items():
                    (draft / _DAYS).write_text(json.dumps(found[day]))

    def ledgers(self) -> list[Path]:
        """Return the files of all ledgers."""
        return self.files(f"{_LEDGER}/*.parquet")

    def days(self) -> "MessageDays":
        """Return the days of messages; all days of events must have been read."""
        about: dict[int, list[str]] = {}
        for day, part in self.parts.items():
            for messages in json.loads((part / _DAYS).read_bytes()):
                about.setdefault(messages, []).append(day)
        return MessageDays(self, dict(sorted(about.items())))

    def news(self, unknowns: Iterable[Unknown]) -> Iterator[Unknown]:
        """Yield them, those that were reported before as such."""
        known = self._reported()
        for each in unknowns:
            yield each.as_reported if _name(each) in known else each

    def note_reported(self, unknowns: Iterable[Unknown]) -> None:
        """Remember the times of which it is known now that not everything is known."""
        known = {_name(each) for each in unknowns if each.kind in OVER}
        draft = self._place / f"{_REPORTED}.draft"
        draft.write_text(json.dumps(sorted(known)))
        draft.replace(self._place / _REPORTED)

    def _reported(self) -> set[str]:
        try:
            return {*json.loads((self._place / _REPORTED).read_bytes())}
        except (OSError, ValueError, TypeError):
            return set()

    def rows(self, messages: int) -> int:
        """Return about how many events the messages of a day have: as many as on that day."""
        return self._rows.get(str(_EPOCH + timedelta(days=messages)), 0)

    def add_events(self, tables: Tables, name: str, days: Iterable[str]) -> None:
        """Give the events of these days a name for later questions."""
        files = [path for day in days for path in paths_of(self._files[day])]
        tables.add_files(name, files, _SCHEMA)


def _name(unknown: Unknown) -> str:
    return f"{unknown.kind} {unknown.node} {unknown.since_us} {unknown.until_us}"


class MessageDays:
    """The days of messages since 1970, each with the days of events about them."""

    def __init__(self, memory: AuditMemory, about: Mapping[int, Sequence[str]]) -> None:
        self._memory = memory
        self._about = about
        self.clean = {
            day: memory.part(str(day), [memory.parts[each].name for each in about[day]])
            for day in about
        }

    def __iter__(self) -> Iterator[int]:
        return iter(self._about)

    def together(self, days: Iterable[int]) -> Iterator[list[int]]:
        """Divide days into those whose messages fit into one question."""
        return together({day: self._memory.rows(day) for day in days})

    def add_events(self, tables: Tables, name: str, days: Sequence[int]) -> None:
        """Give the events about the messages of these days a name for later questions."""
        about = {each for day in days for each in self._about[day]}
        self._memory.add_events(tables, f"days_of_{name}", sorted(about))
        ranges = " or ".join(
            f"msg >= {first * DAY_NS} and msg < {(last + 1) * DAY_NS}"
            for first, last in _ranges(days)
        )
        tables.define(name, f"select * from {{days_of_{name}}} where {ranges}")


def _ranges(days: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of consecutive days."""
    first = last = days[0]
    for day in days[1:]:
        if day != last + 1:
            yield first, last
            first = day
        last = day
    yield first, last


@contextmanager
def remembering(lake: Lake) -> Iterator[AuditMemory]:
    """Yield the memory of a lake's events.

    The caller opens the tables of the audit inside; these may have later files.

    Raises:
        PipelineFailed: There are no tables.
    """
    with place_of(lake, "_audit") as place:
        memory = AuditMemory(place, by_day(lake.found(EVENTS)))
        yield memory
        memory.forget_others(memory.days().clean.values())
