"""The measurements, each in a process of its own: `-m bench.pipeline.steps STEP URL LAKE`."""

import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench.pipeline import duck
from bench.pipeline.watch import cpu_of
from holdfast.pipeline import on_duckdb, on_spark
from holdfast.pipeline.arrow import arrow_of, opened
from holdfast.pipeline.audit.findings import COUNTS, find
from holdfast.pipeline.audit.memory import remembering
from holdfast.pipeline.ingest import (
    IngestProgress,
    Source,
    go_on,
    take_what_is_there,
    write_piece,
)
from holdfast.pipeline.lake import EVENTS, Lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.scope import EVERYTHING
from holdfast.pipeline.session import Engine, open_session
from holdfast.pipeline.source.event_files import RECEIPT
from holdfast.pipeline.source.planning import Planner
from holdfast.pipeline.source.reading import Piece, read_piece
from holdfast.pipeline.source.streams import Journals
from holdfast.pipeline.tasks import LocalTasks, SparkTasks, local_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
_ROUNDS = 4
_IDLE_S = 30.0
SPARK, LOCAL, DUCKDB = "spark", "local", "duckdb"
Found = dict[str, Any]


@contextmanager
def _session(*, quick: bool = False) -> "Iterator[SparkSession]":
    spark = open_session(Engine(MASTER, quick=quick))
    try:
        yield spark
    finally:
        spark.stop()


def _seconds(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return round(perf_counter() - begin, 2)


def _processor_s(work: Callable[[], object]) -> float:
    """Return the processor seconds of this process and of all that it started."""
    before = cpu_of(os.getpid())
    work()
    return round(cpu_of(os.getpid()) - before, 2)


def start(url: str, lake: Lake) -> Found:
    """Start Spark."""
    begin = perf_counter()
    with _session():
        return {"s": round(perf_counter() - begin, 2)}


def source(url: str, lake: Lake) -> Found:
    """Read the whole journal, without output and into Parquet by day."""
    with _session() as spark, tempfile.TemporaryDirectory(dir=lake.root.parent) as place:
        journals = Journals(url, Source(url).namespace)
        planner = Planner(journals, cores=2, accepts_loss=False)
        pieces = planner.pieces({}, planner.advance({}, planner.newest(), None))

        def read(work: Callable[[Piece], Iterator[pa.Table]]) -> None:
            SparkTasks(spark).run(work, pieces, RECEIPT)

        def pass_by() -> None:
            read(partial(_pass_by, url))

        def write() -> None:
            read(partial(write_piece, Source(url), Path(place)))

        noop = [_seconds(pass_by) for _ in range(_ROUNDS)]
        return {"noop": noop, "parquet": [_seconds(write) for _ in range(_ROUNDS)]}


def _pass_by(url: str, piece: Piece) -> Iterator[pa.Table]:
    for _ in read_piece(Journals(url, Source(url).namespace), piece, accepts_loss=False):
        pass
    yield arrow_of(RECEIPT).empty_table()


def ingest(engine: str) -> Callable[[str, Lake], Found]:
    """Return the step that ingests the journal twice in one process, into two sets of tables."""

    def work(url: str, lake: Lake) -> Found:
        again = Lake(lake.root.with_name("again"))
        source = Source(url)
        costs = []
        with _at_work(engine, quick=source.journals().are_small()) as workers:
            for each in (lake, again):
                shutil.rmtree(each.root, ignore_errors=True)
                costs.append(
                    _processor_s(partial(take_what_is_there, workers, source, each, _ignore))
                )
        return {"cold": costs[0], "warm": costs[1], "states": _states(again)}

    return work


@contextmanager
def _at_work(engine: str, *, quick: bool) -> "Iterator[SparkSession | LocalTasks]":
    if engine == LOCAL:
        with local_tasks(2) as tasks:
            yield tasks
    else:
        with _session(quick=quick) as spark:
            yield spark


def _ignore(_: IngestProgress) -> None:
    pass


def answers(engine: str) -> Callable[[str, Lake], Found]:
    """Return the step that asks all reports, twice, and makes an audit that remembers nothing."""

    def work(url: str, lake: Lake) -> Found:
        for memory in ("_audit", "_sums"):
            shutil.rmtree(lake.root / memory, ignore_errors=True)
        with _tables(engine, lake) as tables:

            def ask() -> None:
                for question in REPORTS.values():
                    tables.ask(question, 20)

            found = {"cold": _processor_s(ask), "warm": _processor_s(ask)}
            return found | {"audit": _processor_s(partial(audit, tables, lake))}

    return work


@contextmanager
def _tables(engine: str, lake: Lake) -> Iterator[Tables]:
    if engine == DUCKDB:
        with on_duckdb.of_lake(lake) as tables:
            yield tables
    else:
        with _session(quick=lake.is_small()) as spark:
            yield on_spark.of_lake(lake, spark)


def audit(tables: Tables, lake: Lake) -> None:
    with remembering(lake) as memory:
        find(tables, memory, EVERYTHING, {}, {}, 0, lambda done, total: None)
    tables.ask(COUNTS)


def lives(url: str, lake: Lake) -> Found:
    """Compute lives with DuckDB, by SQL of this benchmark."""
    with tempfile.TemporaryDirectory(dir=lake.root.parent) as place:
        return {"states": duck.lives(lake.files(EVENTS), Path(place))}


def _states(lake: Lake) -> dict[str, int]:
    """Return the number of lives in each state."""
    lives = opened(lake.files("life"), pa.schema([("state", pa.string())])).to_table()
    counted = lives["state"].cast(pa.string()).value_counts()
    return {each["values"].as_py(): each["counts"].as_py() for each in counted}


def idle(url: str, lake: Lake) -> Found:
    """Return the share of a core that an ingest uses while nothing happens."""
    with _session() as spark:
        is_over = threading.Event()
        waiter = threading.Thread(
            target=go_on, args=(spark, Source(url), lake, _ignore, is_over), daemon=True
        )
        waiter.start()
        # The first round does more than the later ones.
        sleep(_IDLE_S / 2)
        before = cpu_of(os.getpid())
        sleep(_IDLE_S)
        share = (cpu_of(os.getpid()) - before) / _IDLE_S
        is_over.set()
        waiter.join()
        return {"share": round(share, 4)}


STEPS: dict[str, Callable[[str, Lake], Found]] = {
    "start": start,
    "source": source,
    "ingest-local": ingest(LOCAL),
    "ingest-spark": ingest(SPARK),
    "lives-duckdb": lives,
    "answers-duckdb": answers(DUCKDB),
    "answers-spark": answers(SPARK),
    "idle": idle,
}


def main() -> None:
    step, url, place = sys.argv[1:]
    print(json.dumps(STEPS[step](url, Lake(Path(place)))))


if __name__ == "__main__":
    main()
