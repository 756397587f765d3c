"""Ingests, audits and asks reports: `-m tests.pipeline.on_cluster STORE LAKE MASTER REPORT...`."""

import sys
from contextlib import suppress
from pathlib import Path

import orjson

from bench.pipeline.standalone import HERE
from holdfast.pipeline.ingest import Source, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_spark import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.session import Engine, open_session
from tests.pipeline.audited import findings
from tests.pipeline.small import SMALL, UNVERIFIED

# Few rows need few tasks.
_SETTINGS = {
    **SMALL,
    "spark.driver.host": HERE,
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.extraJavaOptions": UNVERIFIED,
}


def main() -> None:
    store, place, master, *names = sys.argv[1:]
    lake = Lake(Path(place))
    spark = open_session(Engine(master, quick=True, settings=_SETTINGS))
    try:
        taken = take_what_is_there(spark, Source(store), lake, lambda taken: None)
        tables = of_lake(lake, spark)
        answers = {name: tables.ask(REPORTS[name]).rows for name in names}
        found = {
            "events": taken.events,
            "findings": findings(tables, lake),
            "answers": answers,
            "executors": executors_of(spark.sparkContext.applicationId),
        }
    finally:
        spark.stop()
    sys.stdout.buffer.write(orjson.dumps(found))
    # Not at the end of the process: what ends it there would lose it, and say nothing.
    sys.stdout.buffer.flush()


def executors_of(application: str) -> list[list[str]]:
    """The command lines of the workers' Javas that work for this application."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            words = place.read_text("utf-8", "replace").split("\0")
            if {"org.apache.spark.executor.CoarseGrainedExecutorBackend", application} <= {*words}:
                found.append(words)
    return found


if __name__ == "__main__":
    main()
