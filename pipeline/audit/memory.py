"""What audits found out about days, so that the next one takes the time of the days that changed.

Everything here follows from files of events. It holds as long as these files are the same, and may
be removed at any time.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from hashlib import blake2b
from pathlib import Path

from holdfast.pipeline.audit.ledger import ledger_where
from holdfast.pipeline.lake import Lake, write_down
from holdfast.pipeline.reports.tables import Tables

# Increased by every change of what is found out.
_VERSION = "1"
_DAYS = "_days.json"
_DAY_NS = 86_400_000_000_000
_MESSAGE_DAY = f"cast((msg - msg % {_DAY_NS}) / {_DAY_NS} as bigint)"


class Memory:
    """Of each day of events: their ledger, and the days of the messages that they are about."""

    def __init__(self, place: Path, files: Iterable[Path]) -> None:
        self._place = place
        by_day: dict[str, list[str]] = {}
        for file in files:
            told = file.stat()
            name = f"{file.relative_to(place.parent)} {told.st_size} {told.st_mtime_ns}"
            by_day.setdefault(file.parent.name.partition("=")[2], []).append(name)
        self._ledgers = {day: place / f"{day}-{_digest(each)}" for day, each in by_day.items()}

    @property
    def unread(self) -> list[str]:
        """The days of events that nobody has read as they are now."""
        return [day for day, ledger in self._ledgers.items() if not ledger.exists()]

    def read(self, tables: Tables, day: str) -> None:
        """Find out about a day of events."""
        draft = self._place / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        # Events without a time are of no day.
        is_of_day = f"cast(d as string) = '{day}'" if day[:1].isdigit() else "d is null"
        tables.keep(ledger_where(is_of_day), draft)
        question = f"select distinct {_MESSAGE_DAY} from {{all_events}}"
        days = tables.ask(f"{question} where msg is not null and {is_of_day}").rows
        write_down(draft / _DAYS, [found for (found,) in days])
        draft.rename(self._ledgers[day])

    def ledgers(self) -> list[Path]:
        """Return the files of all ledgers; all days must have been read."""
        return [file for ledger in self._ledgers.values() for file in ledger.glob("*.parquet")]

    def days(self) -> dict[int, Path]:
        """Return the days of messages since 1970, each with a file that exists if it is clean."""
        told: dict[int, list[str]] = {}
        for ledger in self._ledgers.values():
            for day in json.loads((ledger / _DAYS).read_bytes()):
                told.setdefault(day, []).append(ledger.name)
        return {day: self._place / f"{day}-{_digest(told[day])}" for day in sorted(told)}

    def forget_others(self) -> None:
        """Remove what holds no more."""
        known = {*self._ledgers.values(), *self.days().values()}
        for place in {*self._place.glob("*-*")} - known:
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink()


@contextmanager
def remembering(lake: Lake) -> Iterator[Memory]:
    """What is known of a lake's events; only one audit learns at a time, others wait.

    Open the tables to be audited in it: later files, which they may have, do no harm.

    Raises:
        PipelineFailed: There are no tables.
    """
    # Do not create a folder where there are no tables.
    lake.newest()
    place = lake.root / "_audit"
    place.mkdir(exist_ok=True)
    with (place / "lock").open("a") as lock:
        flock(lock, LOCK_EX)
        memory = Memory(place, lake.files("events"))
        yield memory
        memory.forget_others()


def _digest(words: Iterable[str]) -> str:
    told = "\n".join([_VERSION, *sorted(words)])
    return blake2b(told.encode(), digest_size=16).hexdigest()
