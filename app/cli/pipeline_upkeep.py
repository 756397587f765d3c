"""`holdfast pipeline compact`, `retain` and `backfill`: maintain the tables."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import spark
from holdfast.cli.journal_place import AtJournal
from holdfast.cli.options import AsJson, DryRun, Yes, confirm, gathered
from holdfast.cli.output import note, print_json, print_rows, progress, spinner
from holdfast.cli.spark import ChosenEngine, failing, refuse_remote
from holdfast.pipeline.batches import EVENTS
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.swap import keeping_up

if TYPE_CHECKING:
    from holdfast.pipeline.upkeep import Step

# A century.
_MOST_DAYS = 36_500
_NOTHING = "Nothing to do"
_HEAD = ("table", "day", "folders", "files", "bytes")


@gathered
def compact(
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    journal: AtJournal,
    engine: ChosenEngine,
) -> None:
    """Merge the batches of a day: a few large files are faster to read than many small ones."""
    with spark.upkeep(journal, engine) as (lake, session), progress() as bar:
        from holdfast.pipeline.upkeep import compact as take
        from holdfast.pipeline.upkeep import to_compact

        steps = to_compact(session, lake)
        _show(steps, as_json=as_json)
        if dry_run:
            return
        task = bar.add_task("Days", total=len(steps))
        take(session, lake, steps, lambda: bar.advance(task))
    note(f"{len(steps)} days of tables compacted" if steps else _NOTHING)


@gathered
def retain(
    *,
    days: Annotated[
        int, typer.Option("--days", min=1, max=_MOST_DAYS, help="Number of days to keep.")
    ],
    events_days: Annotated[
        int | None,
        typer.Option("--events-days", min=1, help="Days of events to keep; default: as --days."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    journal: AtJournal,
    engine: ChosenEngine,
) -> None:
    """Remove old days from the tables. Shows which, and asks first.

    The newest batch stays, and so do copies that are not settled.
    """
    if events_days is not None and events_days > days:
        raise typer.BadParameter(
            "tables derived from events cannot be kept for less time than the events"
        )
    today = datetime.now(UTC).date()
    before, events_before = (
        today - timedelta(days=kept - 1) for kept in (days, events_days or days)
    )
    lake = Lake(journal.lake)
    with failing(), keeping_up(lake):
        with spark.session(engine(lake.is_small())) as session, spinner("Looking"):
            from holdfast.pipeline.upkeep import forget, to_forget

            steps = to_forget(session, lake, before=before, events_before=events_before)
        _show(steps, as_json=as_json)
        if not steps:
            note(_NOTHING)
        if dry_run or not steps:
            return
        confirm(f"Remove {len(steps)} days of tables?", yes=yes)
        forget(lake, steps)
    note(f"{len(steps)} days of tables removed")


def _show(steps: "Sequence[Step]", *, as_json: bool) -> None:
    rows = [
        (step.table, step.day and str(step.day), len(step.folders), step.files, step.bytes)
        for step in steps
    ]
    print_rows(_HEAD, rows, as_json=as_json)


@gathered
def backfill(*, as_json: AsJson = False, journal: AtJournal, engine: ChosenEngine) -> None:
    """Rebuild all tables that are derived from events, day by day.

    If interrupted, the next run continues after the last complete day.
    """
    refuse_remote(engine(False), "backfill")
    lake = Lake(journal.lake)
    with (
        failing(),
        keeping_up(lake, EVENTS),
        spark.session(engine(False)) as session,
        progress() as bar,
    ):
        from holdfast.pipeline.backfill import backfill as make
        from holdfast.pipeline.backfill import begin

        plan = begin(session, lake)
        task = bar.add_task("Days", total=len(plan.steps), completed=plan.done)
        make(session, lake, plan, lambda done: bar.update(task, completed=done))
    days = [day for step in plan.steps for day in step]
    summary = {"first": days[0], "last": days[-1], "days": len(days), "found_done": plan.done}
    if as_json:
        print_json(summary, is_line=True)
    else:
        note(f"{len(days)} days rebuilt, {days[0]} to {days[-1]}")
