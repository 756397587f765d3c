"""Rebuilds all tables that derive from events: day by day in another folder, then at once.

A step builds tables as an ingest would. After a kill, a backfill continues after the last complete
step; readers never see incomplete tables.

Where events of older days were removed on purpose, the rows about messages that were published on
those days stay as they are: a part of their events would not make the same rows.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.census import census
from holdfast.pipeline.copies import first_id
from holdfast.pipeline.delta import flaws
from holdfast.pipeline.digests import another_name, read_sealed, write_sealed
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import write_lives
from holdfast.pipeline.lake import EVENTS, MADE, TABLES, VERSION, Lake, NewFile, check
from holdfast.pipeline.rewriting import rewrite
from holdfast.pipeline.runs import runs_of
from holdfast.pipeline.spans import first_of, footer
from holdfast.pipeline.storage.place import remove_all
from holdfast.pipeline.table_files import File, paths_of
from holdfast.pipeline.tasks import Tasks

_PLACE = "_backfill"


class Step(NamedTuple):
    """A day, and its files of events."""

    day: str
    files: tuple[str, ...]


class Backfill:
    """A backfill of a lake, or the rest of one."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        # The tables that the steps make.
        self._scratch = Lake(lake.root / _PLACE)
        self._plan = self._scratch.root / "plan.json"
        self.steps = self._planned()
        if not self.steps:
            self._begin()

    @property
    def done(self) -> int:
        """The number of complete steps."""
        state = self._scratch.state()
        return 0 if state is None else state + 1

    def run(self, tasks: Tasks, report: Callable[[int], None]) -> None:
        """Do the remaining steps; `report` is called with the number of complete ones."""
        self._do(tasks, report)
        with self._lake.changing():
            # An ingest may have added events meanwhile.
            self._add_steps()
            self._do(tasks, report)
            self._put_in_place()
        remove_all(self._scratch.root)

    def _planned(self) -> list[Step]:
        """Return the steps of an earlier run, if the table still has the same files."""
        try:
            planned = read_sealed(self._plan)
        except FileNotFoundError:
            return []
        if self._scratch.version() != VERSION:
            return []
        steps = [Step(day, tuple(files)) for day, files in planned]
        known = {file for step in steps for file in step.files}
        return steps if known <= {file for file, _ in self._events()} else []

    def _begin(self) -> None:
        """Plan a step for each day.

        Raises:
            PipelineFailed: There are no events, or there are lives of days whose events are gone:
                these lives would be lost.
        """
        remove_all(self._scratch.root)
        self._add_steps()
        if not self.steps:
            raise PipelineFailed(f"{self._lake.root} has no events to rebuild tables from")
        if self._lake.kept_since() is None:
            check_reach(self._lake.files("life", at=self._lake.state()), self.steps[0].day)

    def _add_steps(self) -> None:
        known = {file for step in self.steps for file in step.files}
        by_day: dict[str, list[str]] = {}
        for file, day in self._events():
            if file not in known:
                by_day.setdefault(day, []).append(file)
        self.steps += [Step(day, tuple(files)) for day, files in sorted(by_day.items())]
        self._scratch.sign()
        write_sealed(self._plan, self.steps)

    def _events(self) -> Iterable[tuple[str, str]]:
        """Yield the files of events in their table, and their days."""
        base = self._lake.root / EVENTS
        # Tables of an older version have a state that other readers refuse.
        for path in self._lake.listed(EVENTS, at=self._lake.state()):
            yield str(path.relative_to(base)), path.parent.name.partition("=")[2]

    def _do(self, tasks: Tasks, report: Callable[[int], None]) -> None:
        for step in self.steps[self.done :]:
            files = [self._lake.root / EVENTS / file for file in step.files]
            check(files)
            for file in files:
                footer(file)
            runs = runs_of(census(tasks, files))
            # A step that was killed while it ended leaves lives behind.
            with self._scratch.changing():
                self._scratch.commit(write_lives(tasks, files, self._scratch, runs), {})
            report(self.done)

    def _put_in_place(self) -> None:
        since = self._lake.kept_since()
        made = list[NewFile]()
        for table in MADE:
            rebuilt, present = self._scratch.found(table), list[File]()
            check(paths_of(rebuilt))
            if since is not None:
                known = self._lake.open(table).files(self._lake.newest())
                present = self._whole(known)
            made += self._chosen(table, rebuilt, since, is_older=False)
            made += self._chosen(table, present, since, is_older=True)
        self._lake.commit(made, self._lake.offset(), replaced=MADE)

    def _whole(self, files: Iterable[File]) -> list[File]:
        """Return the files that are as they were written; those are rebuilt that are not."""
        files = [*files]
        faults = flaws(files)
        return [file for file in files if file.path not in faults]

    def _chosen(
        self, table: str, files: Iterable[File], since: date | None, *, is_older: bool
    ) -> Iterator[NewFile]:
        """Take over the rows about messages from before that day, or about the others."""
        folder = self._lake.root / table
        for file in files:
            if since is None or _has_only(file, since, is_older=is_older):
                # Each attempt uses a new name: a killed run may have made the file already.
                name: str | None = another_name(file.path)
                (folder / str(name)).hardlink_to(file.path)
            else:
                older = _is_older(table, since)
                kept = older if is_older else ~older
                name = rewrite([file.path], arrow_of(TABLES[table][0]), folder, kept)
            if name is not None:
                yield NewFile(table, name)


def _has_only(file: File, since: date, *, is_older: bool) -> bool:
    if file.first is None or file.last is None:
        return False
    begin = first_id(since)
    return file.last < begin if is_older else file.first >= begin


def _is_older(table: str, since: date) -> pc.Expression:
    """Return the condition on rows about messages that were published before that day."""
    if table == "latency":
        return pc.field("hour") < pa.scalar(since).cast(pa.timestamp("us", "UTC"))
    if table == "lost":
        return pc.field("day") < pa.scalar(since)
    return pc.field("msg") < first_id(since)


def check_reach(lives: Iterable[Path], first: str) -> None:
    """Refuse to rebuild lives from events that do not go back as far as the lives.

    Raises:
        PipelineFailed: The events begin later than the lives.
    """
    oldest = min(filter(None, map(_oldest, lives)), default=None)
    if oldest is not None and oldest < first:
        raise PipelineFailed(
            f"events go back to {first}, the table life to {oldest}: its older rows would be lost. "
            "To remove them on purpose, use holdfast pipeline retain"
        )


def _oldest(lives: Path) -> str | None:
    """Return the day of the first end in a file."""
    first = first_of(footer(lives), "ended_ts")
    return None if first is None else str(first.date())
