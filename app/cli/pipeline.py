"""`holdfast pipeline`: what became of messages, read from the journal with Spark."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import pipeline_results as results
from app.cli import spark
from app.cli.failures import Exit
from app.cli.journal_place import JournalPlace, journal
from app.cli.options import AsJson, Limit, gathers
from app.cli.output import complain, note, patience, print_json, print_table, progress
from app.cli.pipeline_replay import replay
from app.cli.pipeline_upkeep import backfill, compact, retain
from app.cli.rows import Parquet, keep, show_result
from app.cli.spark import engine, failing, refuse_remote, silent_ctrl_c, until_ctrl_c
from pipeline.doctor import Sight, examine, prepare, try_out
from pipeline.lake import Lake
from pipeline.session import Engine
from pipeline.source.streams import Journals
from pipeline.swap import reading

if TYPE_CHECKING:
    from pipeline.ingest import Taken
    from pipeline.reports.catalogue import Result

program = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@program.callback()
def about() -> None:
    """What became of messages: reports over the journal."""


program.command("results")(results.results)
program.command("replay")(replay)
program.command("compact")(compact)
program.command("retain")(retain)
program.command("backfill")(backfill)


@program.command("doctor")
@gathers(engine)
def doctor(
    *,
    start: Annotated[bool, typer.Option("--start", help="Start Spark, too.")] = False,
    prepared: Annotated[
        bool, typer.Option("--prepare", help="Make what lets Spark start sooner: a minute, once.")
    ] = False,
    as_json: AsJson = False,
    engine: Callable[[bool], Engine],
) -> None:
    """Say what there is of what the pipeline needs."""
    sights = [*examine()]
    if prepared and _is_well(sights):
        with patience("Preparing"):
            sights[-1] = prepare()
    if start and _is_well(sights):
        with silent_ctrl_c(), patience("Starting Spark"):
            sights += try_out(engine(True))
    _show(sights, as_json=as_json)
    if not _is_well(sights):
        raise typer.Exit(Exit.FAILED)


def _is_well(sights: list[Sight]) -> bool:
    return all(sight.ok is not False for sight in sights)


def _show(sights: list[Sight], *, as_json: bool) -> None:
    if as_json:
        for sight in sights:
            print_json(sight._asdict(), is_line=True)
        return
    words = {True: "yes", False: "no", None: "-"}
    rows = [(sight.thing, words[sight.ok], sight.text) for sight in sights]
    print_table(("WHAT", "OK", "WHICH"), rows)


_ONCE = typer.Option("--once", help="Take what is there and end; else go on until ctrl-C.")
_ACCEPT = typer.Option("--accept-loss", help="Go on where frames are missing; the audit tells.")
_MOST = typer.Option("--max-events", min=1, metavar="N", help="Events in a batch, at most.")


def _in_a_folder(place: Path | None) -> Path | None:
    """A file that can be made: said before the work, not behind it."""
    if place is not None and (place.is_dir() or not place.resolve().parent.is_dir()):
        raise typer.BadParameter(f"{place} is no file in a folder that is there")
    return place


_HTML = typer.Option(
    "--html", metavar="FILE", callback=_in_a_folder, help="Write a page with pictures instead."
)


@program.command("ingest")
@gathers(journal, engine)
def ingest(
    *,
    once: Annotated[bool, _ONCE] = False,
    accept_loss: Annotated[bool, _ACCEPT] = False,
    max_events: Annotated[int, _MOST] = 5_000_000,
    as_json: AsJson = False,
    journal: JournalPlace,
    engine: Callable[[bool], Engine],
) -> None:
    """Take events from the journal into the tables, each of them once."""
    refuse_remote(engine(False), "ingest")
    lake = Lake(journal.lake)
    with (
        failing(),
        journal.store() as url,
        spark.session(engine(once and Journals(url, journal.namespace).are_small())) as session,
        progress() as bar,
    ):
        from pipeline.ingest import Source, go_on, take_what_is_there
        from pipeline.lacking import remember

        task = bar.add_task("Events", total=None)

        def tell(taken: "Taken") -> None:
            bar.update(task, completed=taken.events)

        source = Source(url, journal.namespace, max_events, accept_loss)
        if not once:
            with results.keeping(session, lake, url, journal.namespace), until_ctrl_c() as is_over:
                go_on(session, source, lake, tell, is_over)
            return
        taken = take_what_is_there(session, source, lake, tell)
        remember(lake, taken.lacking)
        if taken.batches:
            results.write(session, lake, url, journal.namespace)
    _tell_taken(taken, as_json=as_json)
    if not lake.positions():
        complain(
            f"nobody has written a journal into this store, in the namespace {journal.namespace}: "
            "--namespace names another, and a server whose setting journal is on writes one"
        )
        raise typer.Exit(Exit.FAILED)


def _tell_taken(taken: "Taken", *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(taken), is_line=True)
    else:
        note(f"{taken.events} events in {taken.batches} batches")
        for kind, frames in sorted(taken.incidents.items()):
            complain(f"{kind}: {frames} frames")
    for node, frames in sorted(taken.lacking.items()):
        complain(f"the journal of node {node} lacks its last {frames} frames")
    if taken.lacking:
        raise typer.Exit(Exit.FAILED)


class Report(StrEnum):
    """What there is to know; pipeline.reports.catalogue has how."""

    LATENCY = "latency"
    DEAD = "dead"
    POISON = "poison"
    REDELIVERY = "redelivery"
    FUNNEL = "funnel"
    FLAPPING = "flapping"
    HOLDBACK_ADVICE = "holdback-advice"
    THROUGHPUT = "throughput"
    ALL = "all"


# Pictures are of all rows, and nobody reads more.
_MOST_ON_PAGE = 20_000
# In the order in which a person wants to know.
_ON_PAGE = (
    Report.THROUGHPUT,
    Report.FUNNEL,
    Report.LATENCY,
    Report.DEAD,
    Report.POISON,
    Report.REDELIVERY,
    Report.FLAPPING,
    Report.HOLDBACK_ADVICE,
)


@program.command("report")
@gathers(journal, engine)
def report(
    *,
    name: Annotated[Report, typer.Argument(metavar="REPORT", help=", ".join(Report))],
    limit: Limit = 50,
    parquet: Parquet = None,
    html: Annotated[Path | None, _HTML] = None,
    as_json: AsJson = False,
    journal: JournalPlace,
    engine: Callable[[bool], Engine],
) -> None:
    """Show one report over all that was ingested, or all of them on a page."""
    if name is Report.ALL and (html is None or parquet is not None or as_json):
        raise typer.BadParameter("all reports together need --html FILE, and nothing else")
    lake = Lake(journal.lake)
    with (
        failing(),
        reading(lake),
        spark.session(engine(lake.is_small())) as session,
        progress() as bar,
    ):
        from pipeline.reports.catalogue import REPORTS, Result, result_of
        from pipeline.reports.tables import tables_of

        tables = tables_of(lake, session)
        found_by: dict[str, Result] = {}
        for wanted in bar.track([*_ON_PAGE] if name is Report.ALL else [name]):
            found = REPORTS[wanted](tables)
            keep(found, parquet)
            found_by[wanted] = result_of(found, limit if html is None else _MOST_ON_PAGE)
    if html is not None:
        _write_page(found_by, html, journal)
        return
    show_result(found_by[name], as_json=as_json)
    if len(found_by[name].rows) == limit:
        note(f"These are {limit}; there may be more: --limit")


def _write_page(results: "Mapping[str, Result]", place: Path, journal: JournalPlace) -> None:
    from pipeline.html.page import page

    try:
        place.write_text(page(results, source=str(journal.lake.resolve())), "utf-8")
    except OSError as error:
        complain(f"{place}: {error.strerror}")
        raise typer.Exit(Exit.FAILED) from None
    note(f"Written to {place}")


@program.command("audit")
@gathers(journal, engine)
def audit(
    *,
    limit: Limit = 50,
    parquet: Parquet = None,
    as_json: AsJson = False,
    journal: JournalPlace,
    engine: Callable[[bool], Engine],
) -> None:
    """Prove that every copy came to one end, or show those that did not.

    Ends with 1 if there is a violation.
    """
    lake = Lake(journal.lake)
    with (
        failing(),
        reading(lake),
        spark.session(engine(lake.is_small())) as session,
        patience("Auditing"),
    ):
        from pipeline.audit import violations
        from pipeline.lacking import remembered
        from pipeline.reports.catalogue import result_of

        found = violations(lake.table(session, "events"), remembered(lake)).cache()
        keep(found, parquet)
        result = result_of(found, limit)
        count = found.count()
    if result.rows or as_json:
        show_result(result, as_json=as_json)
    if count:
        complain(f"{count} violations" if count > 1 else "1 violation")
        raise typer.Exit(Exit.FAILED)
    note("No violations")
