"""Runs work in tasks, on files and Arrow columns, with Spark or in processes of this machine.

The work is the same function, from a share of the work to columns; engines only carry it out.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from holdfast.pipeline.arrow import give_back
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.python import ARROW_POOL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Share = TypeVar("Share")
Rows = list[tuple[Any, ...]]


class Tasks(Protocol):
    """Runs work on shares, each in a separate task. If one task fails, the whole work fails."""

    @property
    def cores(self) -> int:
        """How many tasks can run at a time."""
        ...

    def run(
        self, work: Callable[[Share], Iterator[pa.Table]], shares: Sequence[Share], schema: str
    ) -> Rows:
        """Return the rows of all results, which have these columns, in any order."""
        ...


class SparkTasks:
    """Tasks of Spark, on one machine or a cluster."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    @property
    def cores(self) -> int:
        return self._spark.sparkContext.defaultParallelism

    def run(
        self, work: Callable[[Share], Iterator[pa.Table]], shares: Sequence[Share], schema: str
    ) -> Rows:
        return [tuple(row) for row in self._frame(work, shares, schema).collect()]

    def _frame(
        self, work: Callable[[Share], Iterator[pa.Table]], shares: Sequence[Share], schema: str
    ) -> "DataFrame":
        numbers = self._spark.range(0, len(shares), 1, max(1, len(shares)))
        return numbers.mapInArrow(partial(_work, work, shares), schema)


def _work(
    work: Callable[[Share], Iterator[pa.Table]],
    shares: Sequence[Share],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column("id").to_pylist():
            for table in work(shares[number]):
                yield from table.to_batches()
    give_back()


class LocalTasks:
    """Tasks in processes of this machine, without Java; a single task runs in this process."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self._processes: ProcessPoolExecutor | None = None

    def run(
        self, work: Callable[[Share], Iterator[pa.Table]], shares: Sequence[Share], schema: str
    ) -> Rows:
        if len(shares) <= 1 or self.cores == 1:
            return [row for share in shares for row in _rows_of(work, share)]
        if self._processes is None:
            self._processes = _begin(self.cores)
        try:
            found = self._processes.map(partial(_rows_of, work), shares)
            return [row for rows in found for row in rows]
        except BrokenProcessPool:
            self._processes = None
            raise PipelineFailed(
                "a process that did a part of the work died, perhaps for lack of memory: run the "
                "command again; nothing is lost"
            ) from None

    def close(self) -> None:
        if self._processes is not None:
            self._processes.shutdown(cancel_futures=True)


def _rows_of(work: Callable[[Share], Iterator[pa.Table]], share: Share) -> Rows:
    tables = [*work(share)]
    give_back()
    columns = pa.concat_tables(tables).to_pydict() if tables else {}
    return [*zip(*columns.values(), strict=True)]


def _begin(cores: int) -> ProcessPoolExecutor:
    os.environ.setdefault(*ARROW_POOL)
    # Copies of this process would have its locks, but not the threads that release them.
    context = multiprocessing.get_context("forkserver")
    # What is imported once is there in all processes.
    context.set_forkserver_preload(["holdfast.pipeline.preloaded"])
    return ProcessPoolExecutor(cores, context, initializer=_follow)


def _follow() -> None:
    """Leave Ctrl-C to the process that gives the work, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    giver = multiprocessing.parent_process()

    def end() -> None:
        if giver is not None:
            giver.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def tasks_of(engine: "SparkSession | Tasks") -> Tasks:
    """Return the tasks of a session; others are given as such."""
    # Spark need not be loaded to find out.
    return engine if isinstance(engine, SparkTasks | LocalTasks) else SparkTasks(engine)  # type: ignore[arg-type]


@contextmanager
def local_tasks(cores: int | None = None) -> Iterator[LocalTasks]:
    """Yield tasks on this machine, and end their processes afterwards."""
    tasks = LocalTasks(cores or len(os.sched_getaffinity(0)))
    try:
        yield tasks
    finally:
        tasks.close()
