"""`holdfast pipeline compact`, `retain` and `backfill`: the tables kept small, or made anew."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import spark
from app.cli.journal_place import JournalPlace, journal
from app.cli.options import AsJson, DryRun, Yes, confirm, gathers
from app.cli.output import note, patience, print_json, print_table, progress
from app.cli.spark import engine, failing, refuse_remote
from pipeline.batches import EVENTS
from pipeline.lake import Lake
from pipeline.session import Engine
from pipeline.swap import keeping_up

if TYPE_CHECKING:
    from pipeline.upkeep import Step

# A century: before that there are no dates that mean anything.
_MOST_DAYS = 36_500
_NOTHING = "There is nothing to do"
_HEAD = ("table", "day", "folders", "files", "bytes")


@gathers(journal, engine)
def compact(
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    journal: JournalPlace,
    engine: Callable[[bool], Engine],
) -> None:
    """Put the batches of a day together: few large files are read sooner than many small ones."""
    lake = Lake(journal.lake)
    with (
        failing(),
        keeping_up(lake),
        spark.session(engine(lake.is_small())) as session,
        progress() as bar,
    ):
        from pipeline.upkeep import compact as take
        from pipeline.upkeep import to_compact

        steps = to_compact(session, lake)
        _show(steps, as_json=as_json)
        if dry_run:
            return
        task = bar.add_task("Days", total=len(steps))
        take(session, lake, steps, lambda: bar.advance(task))
    note(f"{len(steps)} days of tables put together" if steps else _NOTHING)


@gathers(journal, engine)
def retain(
    *,
    days: Annotated[int, typer.Option("--days", min=1, max=_MOST_DAYS, help="So many stay.")],
    events_days: Annotated[
        int | None, typer.Option("--events-days", min=1, help="Of events; else as many.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    journal: JournalPlace,
    engine: Callable[[bool], Engine],
) -> None:
    """Remove days that are older from the tables. Says first which, and asks.

    The newest batch stays, and copies that are on their way.
    """
    if events_days is not None and events_days > days:
        raise typer.BadParameter("what is made from events is kept as long as they are, or longer")
    today = datetime.now(UTC).date()
    before, events_before = (
        today - timedelta(days=kept - 1) for kept in (days, events_days or days)
    )
    lake = Lake(journal.lake)
    with failing(), keeping_up(lake):
        with spark.session(engine(lake.is_small())) as session, patience("Looking"):
            from pipeline.upkeep import forget, to_forget

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
    if as_json:
        for row in rows:
            print_json(dict(zip(_HEAD, row, strict=True)), is_line=True)
    else:
        print_table([name.upper() for name in _HEAD], rows)


@gathers(journal, engine)
def backfill(
    *, as_json: AsJson = False, journal: JournalPlace, engine: Callable[[bool], Engine]
) -> None:
    """Make everything anew that is made from events, day by day.

    If it is broken off, the next one goes on behind the last whole day.
    """
    refuse_remote(engine(False), "backfill")
    lake = Lake(journal.lake)
    with (
        failing(),
        keeping_up(lake, EVENTS),
        spark.session(engine(False)) as session,
        progress() as bar,
    ):
        from pipeline.backfill import backfill as make
        from pipeline.backfill import begin

        plan = begin(session, lake)
        task = bar.add_task("Days", total=len(plan.steps), completed=plan.done)
        make(session, lake, plan, lambda done: bar.update(task, completed=done))
    days = [day for step in plan.steps for day in step]
    told = {"first": days[0], "last": days[-1], "days": len(days), "found_done": plan.done}
    if as_json:
        print_json(told, is_line=True)
    else:
        note(f"{len(days)} days made anew, {days[0]} to {days[-1]}")
