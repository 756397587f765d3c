"""Remembers the ledger of each day of events, and the days of messages that were found clean."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.pipeline.audit.ledger import ledger_where
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.reports.memory import Memory, by_day, keep, place_of
from holdfast.pipeline.reports.tables import Tables

_LEDGER, _DAYS = "ledger", "days.json"
_DAY_NS = 86_400_000_000_000
_MESSAGE_DAY = f"cast((msg - msg % {_DAY_NS}) / {_DAY_NS} as bigint)"


class AuditMemory(Memory):
    """Keeps, for each day of events, their ledger and the days of their messages."""

    def read(self, tables: Tables, day: str) -> None:
        """Read a day of events."""
        # Events without a time belong to no day.
        is_of_day = f"cast(d as string) = '{day}'" if day[:1].isdigit() else "d is null"
        with self.writing(day) as draft:
            keep(tables, ledger_where(is_of_day), draft / _LEDGER)
            question = f"select distinct {_MESSAGE_DAY} from {{all_events}}"
            days = tables.ask(f"{question} where msg is not null and {is_of_day}").rows
            (draft / _DAYS).write_text(json.dumps([found for (found,) in days]))

    def ledgers(self) -> list[Path]:
        """Return the files of all ledgers."""
        return self.files(f"{_LEDGER}/*.parquet")

    def days(self) -> dict[int, Path]:
        """Return the days of messages since 1970, each with a file that exists if it is clean."""
        parts: dict[int, list[str]] = {}
        for part in self.parts.values():
            for day in json.loads((part / _DAYS).read_bytes()):
                parts.setdefault(day, []).append(part.name)
        return {day: self.part(str(day), parts[day]) for day in sorted(parts)}


@contextmanager
def remembering(lake: Lake) -> Iterator[AuditMemory]:
    """Yield the memory of a lake's events.

    The caller opens the tables of the audit inside; these may have later files.

    Raises:
        PipelineFailed: There are no tables.
    """
    with place_of(lake, "_audit") as place:
        memory = AuditMemory(place, by_day(lake.listed("events")))
        yield memory
        memory.forget_others(memory.days().values())
