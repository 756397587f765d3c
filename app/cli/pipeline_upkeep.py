"""`holdfast pipeline compact`, `retain` and `backfill`: maintain the tables."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from holdfast.cli.journal_place import AtJournal
from holdfast.cli.options import AsJson, DryRun, Yes, confirm
from holdfast.cli.output import note, print_json, print_rows, progress, spinner
from holdfast.cli.spark import ChosenWorker, failing
from holdfast.pipeline.lake import OLDEST, VERSION, Lake
from holdfast.units import counted

# A century.
_MOST_DAYS = 36_500
_NOTHING = "Nothing to do"
_LOSS = typer.Option(help="Continue without files of events that are missing or incomplete.")
_HISTORY = typer.Option(
    min=1,
    max=_MOST_DAYS,
    help="From now on, keep former states of the tables for this number of days.",
)


def compact(
    *,
    history_days: Annotated[int | None, _HISTORY] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    journal: AtJournal,
) -> None:
    """Merge small files of a day, and delete files that are no longer read.

    A running ingest also does this when there are many files.
    """
    lake = Lake(journal.lake)
    with failing(), lake.alone_with_tables(), progress() as bar:
        from holdfast.pipeline.upkeep import Merge, keep_history, to_compact
        from holdfast.pipeline.upkeep import compact as take

        merges = [*to_compact(lake)]
        print_rows(Merge._fields, merges, as_json=as_json)
        if dry_run:
            return
        if history_days is not None:
            keep_history(lake, history_days)
        task = bar.add_task("Days", total=len(merges))
        take(lake, merges, lambda: bar.advance(task))
    note(f"{counted(len(merges), 'day')} of tables compacted" if merges else _NOTHING)


def retain(
    *,
    days: Annotated[int, typer.Option(min=1, max=_MOST_DAYS, help="Number of days to keep.")],
    events_days: Annotated[
        int | None, typer.Option(min=1, help="Days of events to keep; default: the same as --days.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    journal: AtJournal,
) -> None:
    """Remove rows of old days from the tables. Shows how many, and asks first.

    Copies that are not settled stay.
    """
    if events_days is not None and events_days > days:
        raise typer.BadParameter(
            "tables derived from events cannot be kept for less time than the events: "
            "choose --events-days up to --days"
        )
    today = datetime.now(UTC).date()
    before, events_before = (
        today - timedelta(days=kept - 1) for kept in (days, events_days or days)
    )
    lake = Lake(journal.lake)
    with failing(), lake.alone_with_tables():
        from holdfast.pipeline.upkeep import Cut, forget, to_forget

        with spinner("Looking"):
            cuts = to_forget(lake, before=before, events_before=events_before)
        rows = [(cut.table, str(cut.before), cut.rows) for cut in cuts]
        print_rows(Cut._fields, rows, as_json=as_json)
        if not cuts:
            note(_NOTHING)
        if dry_run or not cuts:
            return
        confirm(f"Remove {counted(sum(cut.rows for cut in cuts), 'row')}?", yes=yes)
        forget(lake, cuts)
    note("Removed")


def backfill(
    *,
    accept_loss: Annotated[bool, _LOSS] = False,
    as_json: AsJson = False,
    journal: AtJournal,
    worker: ChosenWorker,
) -> None:
    """Rebuild all tables that are derived from events, day by day.

    If interrupted, the next run continues after the last complete day. This also
    converts tables of an older version.
    """
    lake = Lake(journal.lake)
    with failing(), lake.alone_with_tables(oldest=OLDEST):
        from holdfast.pipeline.backfill import Backfill
        from holdfast.pipeline.migration import clean_up, take_back, take_over
        from holdfast.pipeline.tasks import tasks_of
        from holdfast.pipeline.upkeep import give_up_lost

        is_older = lake.version() != VERSION
        if is_older:
            take_over(lake)
        if accept_loss:
            note(f"{counted(give_up_lost(lake), 'file')} of events given up")
        if is_older:
            take_back(lake)
        work = Backfill(lake)
        with worker.workers(lambda: False) as engine, progress() as bar:
            done = work.done
            task = bar.add_task("Days", total=len(work.steps), completed=done)
            work.run(tasks_of(engine), lambda done: bar.update(task, completed=done))
        if is_older:
            clean_up(lake)
    days = sorted({step.day for step in work.steps})
    summary = {"first": days[0], "last": days[-1], "days": len(days), "found_done": done}
    if as_json:
        print_json(summary, is_line=True)
    else:
        note(f"{counted(len(days), 'day')} rebuilt, {days[0]} to {days[-1]}")
