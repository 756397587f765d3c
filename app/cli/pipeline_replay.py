"""`holdfast pipeline replay`: selects letters in the tables; the server replays them."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from holdfast.cli import spark
from holdfast.cli.failures import failed
from holdfast.cli.journal_place import AtJournal
from holdfast.cli.letter_options import Everything
from holdfast.cli.model_options import options_of
from holdfast.cli.options import Conditions, DryRun, ToServer, Yes, confirm
from holdfast.cli.output import Json, note, print_rows, spinner
from holdfast.cli.remote import Server
from holdfast.cli.replay import HowToReplay, report, watch_job
from holdfast.cli.spark import ChosenAnswerer, Parquet
from holdfast.store.letters.filter import LetterFilter
from holdfast.units import counted

# The maximum number of ids that the server accepts.
_PART = 1000
_COUNTS = ("total", "sent", "acked", "died_again", "skipped")
_MOST_ROWS = 50

# Without `state`, which only the server knows; some letters may be gone by now.
DeathConditions = Annotated[Conditions, options_of(LetterFilter, without=["ids", "state"])]


def replay(
    *,
    deaths: DeathConditions,
    without_poison: Annotated[
        bool, typer.Option(help="Skip messages that most of their receivers refused.")
    ] = False,
    everything: Everything = False,
    options: HowToReplay,
    dry_run: DryRun = False,
    parquet: Parquet = None,
    yes: Yes = False,
    server: ToServer,
    journal: AtJournal,
    engine: ChosenAnswerer,
) -> None:
    """Have the server replay dead letters that are selected in the tables.

    Shows which, and asks first. Replayed letters are skipped, so the command may be repeated.
    """
    if bool(deaths) is everything:
        raise typer.BadParameter("give conditions, or --all")
    with spark.questions(journal, engine) as tables, spinner("Planning"):
        from holdfast.pipeline.replay import PLAN, SUMMARY, parts, plan
        from holdfast.pipeline.reports.catalogue import result_of

        plan(tables, deaths, without_poison=without_poison, to=options.get("to"))
        if parquet is not None:
            tables.keep(PLAN, parquet)
        about = result_of(tables.ask(SUMMARY, _MOST_ROWS))
        letters = [*parts(tables, _PART)]
    count = sum(map(len, letters))
    if dry_run or not server.as_json:
        print_rows(*about, as_json=server.as_json)
    if not count:
        raise failed("no dead letters match, or all of them were replayed")
    if dry_run:
        note(counted(count, "dead letter"))
        return
    confirm(f"Have the server replay {counted(count, 'dead letter')}?", yes=yes)
    job = _carry_out(server, letters, options)
    report(job, as_json=server.as_json, is_awaited=True)


def _carry_out(server: Server, letters: Sequence[list[str]], options: Json) -> Json:
    """Replay part after part; ends if the server stops one."""
    jobs = []
    for part in letters:
        wanted = {"filter": {"ids": part}, "options": options, "dry_run": False}
        begun = server.ask("POST", "/replays", wanted)
        note(f"Replay {begun['id']} has started; Ctrl-C cancels it")
        job = watch_job(server, str(begun["id"]))
        # The server does not count letters purged meanwhile.
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
    """Combine several replays into the one that was requested."""
    skips: Counter[str] = Counter()
    for job in jobs:
        skips.update(job["skips"])
    counts = {name: sum(job[name] for job in jobs) for name in _COUNTS}
    return {**jobs[-1], **counts, "skips": dict(skips)}
