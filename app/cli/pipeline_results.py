"""`holdfast pipeline results`: what operators see in the console, found out and written back."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer

from app.cli import spark
from app.cli.journal_place import JournalPlace, journal
from app.cli.options import AsJson, gathers
from app.cli.output import patience, print_json, print_table, when
from app.cli.spark import engine, failing
from pipeline.lake import Lake
from pipeline.session import Engine
from pipeline.swap import reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Whoever looks at the console need not see the last minute of it.
_EVERY_S = 60.0


@gathers(journal, engine)
def results(
    *, as_json: AsJson = False, journal: JournalPlace, engine: Callable[[bool], Engine]
) -> None:
    """Find out what the console shows, and write it back to the server's store.

    Ingest does so, too. What was written before is replaced.
    """
    lake = Lake(journal.lake)
    with (
        failing(),
        reading(lake),
        journal.store() as url,
        spark.session(engine(lake.is_small())) as session,
    ):
        found = write(session, lake, url, journal.namespace)
    if as_json:
        for value in found.values():
            print_json(value, is_line=True)
        return
    rows = [
        (name, len(value["rows"]), when(value["since"]), when(value["until"]))
        for name, value in found.items()
    ]
    print_table(("RESULT", "ROWS", "SINCE", "UNTIL"), rows)


def write(
    session: "SparkSession", lake: Lake, url: str, namespace: str
) -> dict[str, dict[str, Any]]:
    """All results over the tables as they are now."""
    from pipeline.reports.tables import tables_of
    from pipeline.results import find_out, write_back

    with patience("Finding out"), reading(lake):
        found = find_out(tables_of(lake, session))
    write_back(found, url, namespace)
    return found


@contextmanager
def keeping(session: "SparkSession", lake: Lake, url: str, namespace: str) -> Iterator[None]:
    """Write them back once a minute, if there is something new, while an ingest goes on."""
    is_over = threading.Event()

    def keep() -> None:
        last = None
        while not is_over.wait(_EVERY_S):
            newest = lake.committed()
            if newest is None or newest == last:
                continue
            # Whatever it is, the ingest goes on.
            with suppress(typer.Exit), failing():
                write(session, lake, url, namespace)
                last = newest

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
