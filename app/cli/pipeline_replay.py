"""`holdfast pipeline replay`: a plan from the tables, carried out by the server."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from app.cli import spark
from app.cli.failures import Exit
from app.cli.journal_place import JournalPlace, journal
from app.cli.options import (
    AsJson,
    Conditions,
    DryRun,
    Everything,
    Yes,
    confirm,
    deaths,
    gathers,
    place,
)
from app.cli.output import complain, note, patience
from app.cli.remote import Json, Place, Remote, talk
from app.cli.replay import options, report, watch_job
from app.cli.rows import Parquet, keep, show_result
from app.cli.spark import engine, failing
from pipeline.lake import Lake
from pipeline.session import Engine
from pipeline.swap import reading

# As many as the server takes by their ids.
_PART = 1000
_COUNTS = ("total", "sent", "acked", "failed", "skipped")
_MOST_ROWS = 50


@gathers(deaths, options, place, journal, engine)
def replay(
    *,
    deaths: Conditions,
    without_poison: Annotated[
        bool,
        typer.Option("--without-poison", help="Leave out what most of its receivers died of."),
    ] = False,
    everything: Everything = False,
    options: Json,
    dry_run: DryRun = False,
    parquet: Parquet = None,
    yes: Yes = False,
    as_json: AsJson = False,
    place: Place,
    journal: JournalPlace,
    engine: Callable[[bool], Engine],
) -> None:
    """Have the server deliver dead letters once more that the tables tell of.

    Says first which, and asks. What was replayed before is left out, so it may be repeated.
    """
    if bool(deaths) is everything:
        raise typer.BadParameter("name conditions, or else --all")
    lake = Lake(journal.lake)
    with (
        failing(),
        reading(lake),
        spark.session(engine(lake.is_small())) as session,
        patience("Planning"),
    ):
        from pipeline.replay import Wanted, parts, plan, summary
        from pipeline.reports.catalogue import result_of
        from pipeline.reports.tables import tables_of

        wanted = Wanted(**deaths, without_poison=without_poison, to=options["to"])
        planned = plan(tables_of(lake, session), wanted).cache()
        keep(planned, parquet)
        about = result_of(summary(planned), _MOST_ROWS)
        letters = [*parts(planned, _PART)]
    count = sum(map(len, letters))
    if dry_run or not as_json:
        show_result(about, as_json=as_json)
    if not count:
        complain("no dead letter is like that, or all of them were replayed")
        raise typer.Exit(Exit.FAILED)
    if dry_run:
        note(f"{count} dead letters")
        return
    confirm(f"Have the server deliver {count} dead letters again?", yes=yes)
    job = talk(place, lambda remote: _carry_out(remote, letters, options))
    report(job, as_json=as_json)


async def _carry_out(remote: Remote, letters: Sequence[list[str]], options: Json) -> Json:
    """Part by part; ends where the server stops one."""
    jobs = []
    for part in letters:
        wanted = {"filter": {"ids": part}, "options": options, "dry_run": False}
        begun = await remote.post("/replays", wanted)
        note(f"Replay {begun['id']} has begun; Ctrl-C ends it")
        job = await watch_job(remote, str(begun["id"]))
        # What was purged meanwhile the server does not count.
        gone = len(part) - job["total"]
        jobs.append(_with_gone(job, gone) if gone else job)
        if job["state"] != "done":
            break
    return _together(jobs)


def _with_gone(job: Json, gone: int) -> Json:
    skips = Counter(job["skips"]) + Counter(gone=gone)
    total, skipped = job["total"] + gone, job["skipped"] + gone
    return {**job, "total": total, "skipped": skipped, "skips": dict(skips)}


def _together(jobs: Sequence[Json]) -> Json:
    """Several replays as the one that they were meant to be."""
    skips: Counter[str] = Counter()
    for job in jobs:
        skips.update(job["skips"])
    counts = {name: sum(job[name] for job in jobs) for name in _COUNTS}
    return {**jobs[-1], **counts, "skips": dict(skips)}
