"""The options that say where Spark runs and writes, and errors if it cannot."""

import logging
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.failures import failed
from holdfast.cli.journal_place import JournalPlace
from holdfast.cli.output import spinner
from holdfast.pipeline.failures import PipelineFailed, in_words, is_of_others
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.scope import EVERYTHING, Scope
from holdfast.pipeline.session import LOCAL, Engine, open_session
from holdfast.pipeline.storage.place import for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.pipeline.reports.tables import Tables
    from holdfast.pipeline.tasks import LocalTasks

_MASTER = typer.Option(
    metavar="URL", help="Where Spark runs: local[2], spark://HOST:7077, k8s://URL."
)
_REMOTE = typer.Option(metavar="URL", help="A Spark Connect server: sc://HOST:15002.")
_CONF = typer.Option(metavar="NAME=VALUE", help="A setting of Spark.")


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where Spark runs, given whether the work is short."""

    master: str | None
    remote: str | None
    settings: Mapping[str, str]

    def __call__(self, quick: bool) -> Engine:
        return Engine(self.master or LOCAL, self.remote, quick, self.settings)

    @property
    def are_given(self) -> bool:
        """Whether there are any."""
        return bool(self.master or self.remote or self.settings)

    @property
    def are_of_a_cluster(self) -> bool:
        """Whether Spark runs elsewhere."""
        return not (self.master or LOCAL).startswith("local")


def engine(
    master: Annotated[str | None, _MASTER] = None,
    remote: Annotated[str | None, _REMOTE] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
) -> SparkOptions:
    # Check the options of Spark.
    options = SparkOptions(master, remote, dict(_setting(word) for word in conf or []))
    try:
        options(True)
    except PipelineFailed as failed:
        raise typer.BadParameter(str(failed)) from None
    return options


ChosenEngine = Annotated[SparkOptions, engine]


class AnswerEngine(StrEnum):
    """What answers questions about the tables."""

    # In this process, without Java.
    DUCKDB = "duckdb"
    SPARK = "spark"


_ANSWER = typer.Option(help="What answers: DuckDB on this machine, or Spark, for tables beyond it.")
_MEMORY = typer.Option(
    metavar="SIZE",
    help="DuckDB's memory: 8GiB. By default 2GiB, or what suffices for many cores; the rest goes "
    "to a temporary folder.",
)
_SIZE = re.compile(r"(\d+) ?([KMGT])(i?)B", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What answers, and where Spark runs."""

    engine: AnswerEngine
    spark: SparkOptions
    # DuckDB's, in bytes.
    memory: int | None = None

    @contextmanager
    def session(self, is_small: Callable[[], bool]) -> "Iterator[SparkSession | None]":
        """Yield the session that answers, or None where DuckDB does."""
        if self.engine is AnswerEngine.DUCKDB:
            yield None
            return
        with session(self.spark(is_small())) as spark:
            yield spark


def answerer(
    engine: Annotated[AnswerEngine, _ANSWER] = AnswerEngine.DUCKDB,
    *,
    spark: ChosenEngine,
    memory: Annotated[str | None, _MEMORY] = None,
) -> AnswerOptions:
    # Check the options of questions.
    if engine is AnswerEngine.DUCKDB and spark.are_given:
        raise typer.BadParameter("--master, --remote and --conf are Spark's: add --engine spark")
    if engine is AnswerEngine.SPARK and memory is not None:
        raise typer.BadParameter("--memory is DuckDB's: use --conf spark.driver.memory=4g")
    return AnswerOptions(engine, spark, None if memory is None else _bytes(memory))


def _bytes(size: str) -> int:
    """Return the number of bytes, in DuckDB's units, where a GB has 1000 MB."""
    found = _SIZE.fullmatch(size)
    if found is None:
        raise typer.BadParameter(f"{size!r} is not a size of memory: write 512MiB or 8GiB")
    number, unit, is_binary = found.groups()
    size_of_unit: int = (1024 if is_binary else 1000) ** (1 + "KMGT".index(unit.upper()))
    return int(number) * size_of_unit


ChosenAnswerer = Annotated[AnswerOptions, answerer]


class Worker(StrEnum):
    """What does the work that makes tables."""

    SPARK = "spark"
    # Processes of this machine, without Java.
    LOCAL = "local"


_WORKER = typer.Option(
    help="What does the work: Spark, or processes of this machine without Java, for small tables.",
)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What does the work, and where Spark runs."""

    worker: Worker
    spark: SparkOptions

    @contextmanager
    def workers(
        self, is_small: Callable[[], bool], *, ends: bool = True
    ) -> "Iterator[SparkSession | LocalTasks]":
        """Yield what does the work, given how to find out whether there is little to begin with.

        Args:
            ends: Whether the work is over when this is done.
        """
        if self.worker is Worker.SPARK:
            with session(self.spark(ends and is_small())) as spark:
                yield spark
            return
        from holdfast.pipeline.tasks import local_tasks

        # For a little, it takes longer to start other processes than to do it.
        with silent_ctrl_c(), local_tasks(1 if is_small() else None) as tasks:
            yield tasks


def worker(
    engine: Annotated[Worker, _WORKER] = Worker.SPARK,
    *,
    spark: ChosenEngine,
) -> WorkerOptions:
    # Check the options of work that makes tables.
    if engine is Worker.LOCAL and spark.are_given:
        raise typer.BadParameter(
            "--engine local works without Spark: leave out --master, --remote and --conf"
        )
    if spark.remote is not None:
        raise typer.BadParameter("the work writes the tables itself: use --master")
    return WorkerOptions(engine, spark)


ChosenWorker = Annotated[WorkerOptions, worker]


def _setting(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise typer.BadParameter(f"{word!r} is not a setting: write spark.some.name=value")
    return name, value


@contextmanager
def failing() -> Iterator[None]:
    """Report failures of the pipeline without a traceback."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, PipelineFailed) and not is_of_others(error):
            raise
        raise failed(in_words(error)) from None


@contextmanager
def session(engine: Engine) -> "Iterator[SparkSession]":
    """Yield a session of Spark while a command needs it."""
    with silent_ctrl_c():
        with spinner("Starting Spark"):
            spark = open_session(engine)
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def questions(
    journal: JournalPlace, engine: AnswerOptions, scope: Scope = EVERYTHING
) -> "Iterator[Tables]":
    """Yield the tables of a journal."""
    lake = Lake(journal.lake)
    with failing():
        # Spark need not start where there is nothing to read, or nothing that it can read.
        lake.newest()
        if engine.engine is AnswerEngine.SPARK:
            for_spark(lake.root)
        with (
            engine.session(lake.is_small) as spark,
            answering(lake, spark, scope, engine.memory) as tables,
        ):
            yield tables


@contextmanager
def answering(
    lake: Lake,
    spark: "SparkSession | None",
    scope: Scope = EVERYTHING,
    memory: int | None = None,
) -> "Iterator[Tables]":
    """Yield the tables of a lake; without a session, DuckDB answers questions."""
    # Import only the engine that is used: both take long to load.
    if spark is not None:
        from holdfast.pipeline import on_spark

        yield on_spark.of_lake(lake, spark, scope)
        return
    from holdfast.pipeline import on_duckdb

    with on_duckdb.of_lake(lake, scope, memory) as tables:
        yield tables


def _new(place: Path | None) -> Path | None:
    """Check before the work that the folder does not exist."""
    if place is not None and place.exists():
        raise typer.BadParameter(f"{place} exists already: name a new folder")
    return place


Parquet = Annotated[
    Path | None,
    typer.Option(metavar="DIR", callback=_new, help="Also write all rows to this folder."),
]


@contextmanager
def silent_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end Spark's work silently."""
    before = signal.signal(signal.SIGINT, _break_off)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _break_off(number: int, frame: FrameType | None) -> None:
    """End the program at once; an exception would also be reported by code that talks to Java."""
    logging.disable()
    raise KeyboardInterrupt


@contextmanager
def until_ctrl_c() -> Iterator[Event]:
    """Yield an event that the first Ctrl-C sets, to end work in order; the second one aborts it."""
    is_over = Event()

    def end(number: int, frame: FrameType | None) -> None:
        is_over.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield is_over
    finally:
        signal.signal(signal.SIGINT, before)
