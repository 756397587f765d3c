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
from holdfast.pipeline.census import census
from holdfast.pipeline.ingest import Source, go_on, take_what_is_there, write_lives, write_piece
from holdfast.pipeline.lake import EVENTS, Lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.runs import runs_of
from holdfast.pipeline.scope import EVERYTHING
from holdfast.pipeline.session import Engine, open_session
from holdfast.pipeline.source.event_files import RECEIPT
from holdfast.pipeline.source.planning import Planner
from holdfast.pipeline.source.reading import Piece, read_piece
from holdfast.pipeline.source.streams import Journals
from holdfast.pipeline.tasks import SparkTasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
_ROUNDS = 4
_IDLE_S = 30.0
# The reports that each engine makes.
ASKED = ("latency", "dead", "poison")
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


def ingest(url: str, lake: Lake) -> Found:
    """Ingest the journal as `holdfast pipeline ingest --once` does."""
    with _session(quick=Journals(url, Source(url).namespace).are_small()) as spark:
        taken = take_what_is_there(spark, Source(url), lake, lambda taken: None)
        return {"events": taken.events, "batches": taken.batches}


def spark(url: str, lake: Lake) -> Found:
    """Compute lives from events, and the most common reports about them."""
    with _session() as spark, tempfile.TemporaryDirectory(dir=lake.root.parent) as place:
        files = lake.files(EVENTS)
        made = Lake(Path(place))
        made.sign()

        def make() -> None:
            tasks = SparkTasks(spark)
            lives = write_lives(tasks, files, made, runs_of(census(tasks, files)))
            made.commit(lives, {})

        took = {"lives": _seconds(make)}
        return took | _answers(on_spark.of_lake(lake, spark), lake) | {"states": _states(made)}


def _answers(tables: Tables, lake: Lake) -> Found:
    """Return the seconds of reports, and of an audit that remembers nothing."""
    shutil.rmtree(lake.root / "_audit", ignore_errors=True)
    took = {name: _seconds(partial(tables.ask, REPORTS[name], 20)) for name in ASKED}
    return took | {"audit": _seconds(partial(audit, tables, lake))}


def audit(tables: Tables, lake: Lake) -> None:
    with remembering(lake) as memory:
        find(tables, memory, EVERYTHING, {}, {}, 0, lambda done, total: None)
    tables.ask(COUNTS)


def _states(lake: Lake) -> dict[str, int]:
    """Return the number of lives in each state."""
    lives = opened(lake.files("life"), pa.schema([("state", pa.string())])).to_table()
    counted = lives["state"].cast(pa.string()).value_counts()
    return {each["values"].as_py(): each["counts"].as_py() for each in counted}


def duckdb(cores: int) -> Callable[[str, Lake], Found]:
    """Return the same step without Spark, on this number of cores."""

    def work(url: str, lake: Lake) -> Found:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
        states: dict[str, int] = {}
        with tempfile.TemporaryDirectory(dir=lake.root.parent) as place:

            def make() -> None:
                states.update(duck.lives(lake.files(EVENTS), Path(place)))

            took = {"lives": _seconds(make)}
        with on_duckdb.of_lake(lake) as tables:
            return took | _answers(tables, lake) | {"states": states}

    return work


def idle(url: str, lake: Lake) -> Found:
    """Return the share of a core that an ingest uses while nothing happens."""
    with _session() as spark:
        is_over = threading.Event()
        waiter = threading.Thread(
            target=go_on, args=(spark, Source(url), lake, lambda taken: None, is_over), daemon=True
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
    "ingest": ingest,
    "spark": spark,
    "duckdb-1": duckdb(1),
    "duckdb-2": duckdb(2),
    "idle": idle,
}


def main() -> None:
    step, url, place = sys.argv[1:]
    lake = Lake(Path(place))
    if step == "ingest":
        shutil.rmtree(lake.root, ignore_errors=True)
    print(json.dumps(STEPS[step](url, lake)))


if __name__ == "__main__":
    main()
