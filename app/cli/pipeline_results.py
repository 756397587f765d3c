"""`holdfast pipeline results`: computes what the console shows, and stores it."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer

from holdfast.cli import spark
from holdfast.cli.journal_place import AtJournal, JournalPlace
from holdfast.cli.options import AsJson
from holdfast.cli.output import complain, print_items, spinner, time_of
from holdfast.cli.spark import ChosenAnswerer, failing
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.pipeline.reports.tables import Tables

# The console need not show the latest minute.
_EVERY_S = 60.0
# The share of time that results may take, as they are computed from all tables.
_SHARE = 0.05
_ROWS = ("ROWS", lambda result: len(result["rows"]))
_RESULTS = ("result", _ROWS, time_of("since"), time_of("until"))


def results(*, as_json: AsJson = False, journal: AtJournal, engine: ChosenAnswerer) -> None:
    """Compute the results that the console shows, and write them to the server's store.

    Ingest does this too. Earlier results are replaced.
    """
    with spark.questions(journal, engine) as tables, journal.stores() as url, spinner("Computing"):
        found = write(tables, url, journal.namespace)
    print_items(_RESULTS, found.values(), as_json=as_json)


def write(tables: "Tables", url: str, namespace: str) -> dict[str, dict[str, Any]]:
    """Compute all results."""
    from holdfast.pipeline.results import find_out, write_back

    found = find_out(tables)
    write_back(found, url, namespace)
    return found


def write_present(lake: Lake, session: "SparkSession | None", url: str, namespace: str) -> None:
    """Compute all results from the present tables."""
    with spark.answering(lake, session) as tables:
        write(tables, url, namespace)


def write_audit(violations: Mapping[str, int], journal: JournalPlace) -> None:
    """Tell the server what an audit found, if its store is there."""
    url = journal.present_store
    if url is None:
        return
    from holdfast.pipeline.results import of_audit, write_back

    try:
        write_back({"audit": of_audit(violations)}, url, journal.namespace)
    except PipelineFailed as failed:
        complain(f"the server does not learn what this audit found: {failed}")


@contextmanager
def keeping(lake: Lake, session: "SparkSession | None", url: str, namespace: str) -> Iterator[None]:
    """Write results once a minute during an ingest, if there is anything new."""
    is_over = threading.Event()

    def keep() -> None:
        last, pause_s = None, _EVERY_S
        while not is_over.wait(pause_s):
            begin = time.monotonic()
            # The ingest continues, whatever fails here.
            with suppress(typer.Exit), failing():
                newest = lake.state()
                if newest is None or newest == last:
                    continue
                write_present(lake, session, url, namespace)
                last = newest
            pause_s = max(_EVERY_S, (time.monotonic() - begin) / _SHARE)

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
