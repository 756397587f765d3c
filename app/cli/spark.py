"""Where Spark computes for a command, and what is said when it cannot."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.failures import Exit
from app.cli.output import complain, patience
from pipeline.failures import PipelineFailed, in_words, is_of_others
from pipeline.session import LOCAL, Engine, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MASTER = typer.Option(
    "--master", metavar="URL", help="Where Spark computes: local[2], spark://HOST:7077, k8s://URL."
)
_REMOTE = typer.Option("--remote", metavar="URL", help="A Spark Connect server: sc://HOST:15002.")
_CONF = typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark's own.")


def engine(
    master: Annotated[str, _MASTER] = LOCAL,
    remote: Annotated[str | None, _REMOTE] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
) -> Callable[[bool], Engine]:
    """Where Spark computes, once it is known whether the work is short."""
    settings = dict(_setting(word) for word in conf or [])

    def make(quick: bool) -> Engine:
        return Engine(master, remote, quick, settings)

    try:
        make(True)
    except PipelineFailed as failed:
        raise typer.BadParameter(str(failed)) from None
    return make


def refuse_remote(engine: Engine, who: str) -> None:
    """Whose tasks write files themselves needs workers of its own."""
    if engine.remote is not None:
        raise typer.BadParameter(f"{who} writes the tables itself: give it a --master")


def _setting(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise typer.BadParameter(f"{word!r} is no setting: write spark.some.name=value")
    return name, value


@contextmanager
def failing() -> Iterator[None]:
    """What keeps the pipeline from working is said, not shown as a fault of ours."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, PipelineFailed) and not is_of_others(error):
            raise
        complain(in_words(error))
        raise typer.Exit(Exit.FAILED) from None


@contextmanager
def session(engine: Engine) -> "Iterator[SparkSession]":
    """Spark, while a command needs it."""
    with silent_ctrl_c():
        with patience("Starting Spark"):
            spark = open_session(engine)
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def silent_ctrl_c() -> Iterator[None]:
    """It ends what Spark does without a word."""
    before = signal.signal(signal.SIGINT, _break_off)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _break_off(number: int, frame: FrameType | None) -> None:
    """Whoever was just talking to Java would tell of that, too."""
    logging.disable()
    raise KeyboardInterrupt


@contextmanager
def until_ctrl_c() -> Iterator[Event]:
    """Set by the first ctrl-C; Spark itself would be torn out of whatever it says to its Java."""
    is_over = Event()
    before = signal.signal(signal.SIGINT, lambda number, frame: is_over.set())
    try:
        yield is_over
    finally:
        signal.signal(signal.SIGINT, before)
