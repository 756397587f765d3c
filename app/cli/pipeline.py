"""`holdfast pipeline`: reads the journal into tables, and reports on what happened to messages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from holdfast.cli import pipeline_results as results
from holdfast.cli import spark
from holdfast.cli.failures import Exit, failed
from holdfast.cli.journal_place import AtJournal, JournalPlace
from holdfast.cli.moments import moment, now_ms
from holdfast.cli.options import AsJson, Limit
from holdfast.cli.output import (
    complain,
    note,
    print_json,
    progress,
    spinner,
)
from holdfast.cli.pipeline_lakes import program as lakes
from holdfast.cli.pipeline_replay import replay
from holdfast.cli.pipeline_tables import explain, print_result
from holdfast.cli.pipeline_upkeep import backfill, compact, retain
from holdfast.cli.pipeline_verify import verify
from holdfast.cli.program import group_of_commands
from holdfast.cli.spark import (
    ChosenAnswerer,
    ChosenWorker,
    Parquet,
    Worker,
    WorkerOptions,
    failing,
    until_ctrl_c,
)
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.scope import Scope
from holdfast.units import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.pipeline.ingest import IngestProgress
    from holdfast.pipeline.reports.catalogue import Result
    from holdfast.pipeline.source.streams import Journals

program = group_of_commands()

_ONCE = typer.Option(help="Read what the journal has, then end; default: continue until Ctrl-C.")
_ACCEPT = typer.Option(help="Continue even if frames are missing; the audit reports them.")
_MOST = typer.Option(min=1, metavar="N", help="Maximum number of events in a batch.")

_EVERY = typer.Option(
    min=0, metavar="SECONDS", help="Time between batches while few events arrive."
)

_WAIT = typer.Option(
    min=0,
    metavar="SECONDS",
    help="How long to wait for another ingest of the same tables; one that was killed keeps a "
    "bucket for 30 s.",
)


def _in_a_folder(place: Path | None) -> Path | None:
    """Check before the work that the file can be created."""
    if place is not None and (place.is_dir() or not place.resolve().parent.is_dir()):
        raise typer.BadParameter(f"{place}: name a file in an existing folder")
    return place


_TIME = "A span (2h) or a date (2026-11-20T08:00)."
_SINCE = typer.Option(metavar="TIME", help=f"Messages published at this time or later. {_TIME}")
_UNTIL = typer.Option(metavar="TIME", help=f"Messages published before this time. {_TIME}")
_CHANNEL = typer.Option(metavar="CHANNEL", help="Messages on this channel.")
_RECEIVER = typer.Option(metavar="SESSION", help="Copies for this session: joe/1.")
_HTML = typer.Option(
    metavar="FILE", callback=_in_a_folder, help="Write a page with charts instead."
)

_COLUMNS = typer.Option(help="Only say what each column means.")


@program.command("ingest")
def ingest(
    *,
    once: Annotated[bool, _ONCE] = False,
    accept_loss: Annotated[bool, _ACCEPT] = False,
    max_events: Annotated[int, _MOST] = 5_000_000,
    every: Annotated[float, _EVERY] = 60.0,
    wait: Annotated[float, _WAIT] = 0.0,
    as_json: AsJson = False,
    journal: AtJournal,
    work: ChosenWorker,
) -> None:
    """Copy events from the journal into the tables, each exactly once."""
    from holdfast.pipeline.source.streams import Journals

    lake = Lake(journal.lake)
    with (
        failing(),
        journal.stores() as url,
        work.workers(Journals(url, journal.namespace).are_small, ends=once) as engine,
    ):
        from holdfast.pipeline.ingest import Source, go_on, take_what_is_there

        source = Source(url, journal.namespace, max_events, accept_loss, every, wait)
        # With a cluster, answers come from there too, if it can read the tables.
        is_asked = work.spark.are_of_a_cluster and lake.is_on_disk
        asked = cast("SparkSession", engine) if is_asked else None
        if not once:
            with (
                results.keeping(lake, asked, url, journal.namespace),
                until_ctrl_c() as is_over,
                _progress_of_events() as report,
            ):
                go_on(engine, source, lake, _warning(report, work), is_over)
            return
        with _progress_of_frames(source.journals(), lake) as report:
            done = take_what_is_there(engine, source, lake, _warning(report, work))
        if done.batches:
            results.write_present(lake, asked, url, journal.namespace)
    print_progress(done, as_json=as_json)
    if not lake.positions():
        raise failed(
            f"this store has no journal in the namespace {journal.namespace}: "
            "--namespace names another, and a server whose setting journal is on writes one"
        )


def _warning(
    report: "Callable[[IngestProgress], None]", work: WorkerOptions
) -> "Callable[[IngestProgress], None]":
    """Warn, once, if one machine is no longer enough."""
    is_warned = work.worker is not Worker.LOCAL

    def also_warn(done: "IngestProgress") -> None:
        nonlocal is_warned
        report(done)
        if done.is_outgrown and not is_warned:
            is_warned = True
            complain(
                f"this machine works for {done.worked_s:.0f} s on {done.covered_s:.0f} s of the "
                "journal: --engine local is outgrown. Use --engine spark, and a cluster"
            )

    return also_warn


@contextmanager
def _progress_of_events() -> "Iterator[Callable[[IngestProgress], None]]":
    with progress(has_end=False) as bar:
        task = bar.add_task("Events", total=None)
        yield lambda done: bar.update(task, completed=done.events)


@contextmanager
def _progress_of_frames(
    journals: "Journals", lake: Lake
) -> "Iterator[Callable[[IngestProgress], None]]":
    """Show how many of the frames that are there now have been read."""

    def read() -> int:
        return sum(position.seq for position in lake.positions().values())

    before = read()
    with progress() as bar:
        task = bar.add_task("Frames", total=max(sum(journals.numbered().values()) - before, 0))
        yield lambda done: bar.update(task, completed=read() - before)


def print_progress(done: "IngestProgress", *, as_json: bool) -> None:
    if as_json:
        print_json(done.as_json(), is_line=True)
    else:
        note(f"{counted(done.events, 'event')} in {counted(done.batches, 'batch', 'batches')}")
        for kind, frames in sorted(done.incidents.items()):
            complain(f"{kind}: {counted(frames, 'frame')}")
    for node, frames in sorted(done.lacking.items()):
        complain(f"the journal of node {node} lacks its last {counted(frames, 'frame')}")
    if done.lacking:
        raise typer.Exit(Exit.FAILED)


class Report(StrEnum):
    """The reports in reading order; holdfast.pipeline.reports.catalogue has their queries."""

    THROUGHPUT = "throughput"
    DAYS = "days"
    UNUSUAL = "unusual"
    PUBLISHERS = "publishers"
    FUNNEL = "funnel"
    BACKLOG = "backlog"
    TREND = "trend"
    LATENCY = "latency"
    LAG = "lag"
    SLOW_RECEIVERS = "slow-receivers"
    CAUSES = "causes"
    DEAD = "dead"
    POISON = "poison"
    REDELIVERY = "redelivery"
    FLAPPING = "flapping"
    HOLDBACK_ADVICE = "holdback-advice"
    REQUESTS = "requests"
    REFUSED_PUBLISHES = "refused-publishes"
    ALL = "all"


# Charts include all rows; a longer table would be unreadable.
_MOST_ON_PAGE = 20_000
_ON_PAGE = [each for each in Report if each is not Report.ALL]


def _scope(
    since: Annotated[str | None, _SINCE] = None,
    until: Annotated[str | None, _UNTIL] = None,
    channel: Annotated[str | None, _CHANNEL] = None,
    receiver: Annotated[str | None, _RECEIVER] = None,
) -> Scope:
    # Return the conditions on what a report is about.
    name = None if receiver is None else receiver.removeprefix("client/")
    return Scope(moment(since, ago=True), moment(until, ago=True), channel, name)


@program.command("report")
def report(
    *,
    name: Annotated[Report, typer.Argument(metavar="REPORT", help=", ".join(Report))],
    scope: Annotated[Scope, _scope],
    limit: Limit = 50,
    parquet: Parquet = None,
    html: Annotated[Path | None, _HTML] = None,
    columns: Annotated[bool, _COLUMNS] = False,
    as_json: AsJson = False,
    journal: AtJournal,
    engine: ChosenAnswerer,
) -> None:
    """Show one report on all ingested events or some, or write all reports to a page."""
    if columns and name is not Report.ALL:
        explain(name, as_json=as_json)
        return
    if name is Report.ALL and (html is None or parquet is not None or as_json):
        raise typer.BadParameter(
            "the report all needs --html FILE, and takes neither --parquet nor --json"
        )
    with spark.questions(journal, engine, scope) as tables:
        from holdfast.pipeline.reports.catalogue import REPORTS, Result, result_of
        from holdfast.pipeline.reports.sums import recall

        if scope.is_everything and name in (Report.FUNNEL, Report.ALL):
            with spinner("Reading new files"):
                recall(tables, Lake(journal.lake))
        found_by: dict[str, Result] = {}
        for wanted in _each(_ON_PAGE if name is Report.ALL else [name]):
            question = REPORTS[wanted]
            if parquet is not None:
                tables.keep(question, parquet)
            most = limit if html is None else _MOST_ON_PAGE
            found_by[wanted] = result_of(tables.ask(question, most))
    if html is not None:
        _write_page(found_by, html, journal)
        return
    print_result(name, found_by[name], as_json=as_json)
    if len(found_by[name].rows) == limit:
        note(f"Showing {limit}; there may be more: use --limit")


def _each(names: Sequence[Report]) -> Iterator[Report]:
    """Show how many are done, if there are several."""
    if len(names) == 1:
        with spinner("Answering"):
            yield from names
    else:
        with progress() as bar:
            yield from bar.track(names, description="Reports")


def _write_page(results: "Mapping[str, Result]", place: Path, journal: JournalPlace) -> None:
    from holdfast.pipeline.html.page import page

    try:
        place.write_text(page(results, source=str(journal.lake.resolve())), "utf-8")
    except OSError as error:
        raise failed(f"{place}: {error.strerror}") from None
    note(f"Written to {place}")


@program.command("audit")
def audit(
    *,
    scope: Annotated[Scope, _scope],
    limit: Limit = 50,
    parquet: Parquet = None,
    columns: Annotated[bool, _COLUMNS] = False,
    as_json: AsJson = False,
    journal: AtJournal,
    engine: ChosenAnswerer,
) -> None:
    """Check that every copy was settled exactly once; show those that were not.

    It also shows times of which not everything is known. The exit code is 1 if there is a
    violation, and 5 if there is none, but a server is silent, or was killed or wrote no books in a
    time that no audit of everything has reported before.
    """
    if columns:
        explain("audit", as_json=as_json)
        return
    from holdfast.pipeline import heard
    from holdfast.pipeline.audit.coverage import UNCERTAIN
    from holdfast.pipeline.audit.findings import COUNTS, FINDINGS, find
    from holdfast.pipeline.audit.memory import remembering
    from holdfast.pipeline.lacking import remembered
    from holdfast.pipeline.reports.catalogue import result_of

    lake = Lake(journal.lake)
    with failing(), remembering(lake) as memory, spark.questions(journal, engine) as tables:
        with progress() as bar:
            task = bar.add_task("Days", total=None)

            def report(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            known = remembered(lake), heard.remembered(lake)
            unknowns = find(tables, memory, scope, *known, now_ms() * 1000, report)
        if parquet is not None:
            tables.keep(FINDINGS, parquet)
        result = result_of(tables.ask(FINDINGS, limit))
        counts: dict[str, int] = dict(tables.ask(COUNTS).rows)
        if scope.is_everything:
            memory.note_reported(unknowns)
    if result.rows or as_json:
        print_result("audit", result, as_json=as_json)
    _note_unknown(lake)
    violations = {kind: n for kind, n in counts.items() if not kind.startswith("run.")}
    if scope.is_everything:
        results.write_audit(violations, journal)
    if violations:
        raise failed(counted(sum(violations.values()), "violation"))
    note("No violations")
    times = sum(counts.get(kind, 0) for kind in UNCERTAIN)
    if times:
        raise failed(
            f"not everything is known about {counted(times, 'time')}: see the rows "
            f"{', '.join(UNCERTAIN)}",
            Exit.UNCERTAIN,
        )


def _note_unknown(lake: Lake) -> None:
    """Tell the user if some files of events have no digest and cannot be checked."""
    from holdfast.pipeline.digests import has_digest
    from holdfast.pipeline.lake import EVENTS

    with failing():
        unknown = sum(not has_digest(file) for file in lake.listed(EVENTS))
    if unknown:
        note(f"{counted(unknown, 'file')} of events without a digest: see holdfast pipeline verify")


# Help shows commands in the order of their registration.
program.command("results")(results.results)
program.command("replay")(replay)
program.command("verify")(verify)
program.command("compact")(compact)
program.command("retain")(retain)
program.command("backfill")(backfill)
program.add_typer(
    lakes, name="lake", help="List and drop the tables for which the server keeps frames."
)
