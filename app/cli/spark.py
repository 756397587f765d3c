"""The options that say where Spark runs and writes, and errors if it cannot."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.failures import Exit
from holdfast.cli.journal_place import JournalPlace
from holdfast.cli.output import complain, spinner
from holdfast.pipeline.failures import PipelineFailed, in_words, is_of_others
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.session import LOCAL, Engine, open_session
from holdfast.pipeline.swap import reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MASTER = typer.Option(
    "--master", metavar="URL", help="Where Spark runs: local[2], spark://HOST:7077, k8s://URL."
)
_REMOTE = typer.Option("--remote", metavar="URL", help="A Spark Connect server: sc://HOST:15002.")
_CONF = typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark.")


def engine(
    master: Annotated[str, _MASTER] = LOCAL,
    remote: Annotated[str | None, _REMOTE] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
) -> Callable[[bool], Engine]:
    """Where Spark runs, given whether the work is short."""
    settings = dict(_setting(word) for word in conf or [])

    def make(quick: bool) -> Engine:
        return Engine(master, remote, quick, settings)

    try:
        make(True)
    except PipelineFailed as failed:
        raise typer.BadParameter(str(failed)) from None
    return make


ChosenEngine = Annotated[Callable[[bool], Engine], engine]


def refuse_remote(engine: Engine, who: str) -> None:
    """Refuse Spark Connect for work whose tasks write files themselves."""
    if engine.remote is not None:
        raise typer.BadParameter(f"{who} writes the tables itself: use --master")


def _setting(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise typer.BadParameter(f"{word!r} is not a setting: write spark.some.name=value")
    return name, value


@contextmanager
def failing() -> Iterator[None]:
    """Report what keeps the pipeline from working, without a traceback."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, PipelineFailed) and not is_of_others(error):
            raise
        complain(in_words(error))
        raise typer.Exit(Exit.FAILED) from None


@contextmanager
def session(engine: Engine) -> "Iterator[SparkSession]":
    """Spark, for as long as a command needs it."""
    with silent_ctrl_c():
        with spinner("Starting Spark"):
            spark = open_session(engine)
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def tables(
    journal: JournalPlace,
    engine: Callable[[bool], Engine],
    lock: Callable[[Lake], AbstractContextManager[None]] = reading,
) -> "Iterator[tuple[Lake, SparkSession]]":
    """The tables of a journal, locked for what is done with them, and Spark to read them."""
    lake = Lake(journal.lake)
    with failing(), lock(lake), session(engine(lake.is_small())) as spark:
        yield lake, spark


def _new(place: Path | None) -> Path | None:
    """Check before the work that the folder does not exist."""
    if place is not None and place.exists():
        raise typer.BadParameter(f"{place} exists already: name a new folder")
    return place


Parquet = Annotated[
    Path | None,
    typer.Option(
        "--parquet", metavar="DIR", callback=_new, help="Also write all rows to this folder."
    ),
]


def keep(found: "DataFrame", place: Path | None) -> None:
    """Write all rows, if requested."""
    if place is not None:
        found.write.mode("error").parquet(f"file://{place.resolve()}")


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
    """An event set by the first Ctrl-C; an exception would interrupt Spark's talk to Java."""
    is_over = Event()
    before = signal.signal(signal.SIGINT, lambda number, frame: is_over.set())
    try:
        yield is_over
    finally:
        signal.signal(signal.SIGINT, before)
