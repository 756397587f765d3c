"""`holdfast pipeline`: what became of messages, read from the journal with Spark."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from app.cli.failures import Exit
from app.cli.options import AsJson, gathers
from app.cli.output import complain, patience, print_json, print_table
from pipeline.doctor import Sight, examine, prepare, try_out
from pipeline.failures import PipelineFailed
from pipeline.session import LOCAL, Engine

program = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@program.callback()
def about() -> None:
    """What became of messages: reports over the journal."""


_MASTER = typer.Option(
    "--master", metavar="URL", help="Where Spark computes: local[2], spark://HOST:7077, k8s://URL."
)
_REMOTE = typer.Option("--remote", metavar="URL", help="A Spark Connect server: sc://HOST:15002.")
_CONF = typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark's own.")


@contextmanager
def failing() -> Iterator[None]:
    """What keeps the pipeline from working is said, not shown as a fault of ours."""
    try:
        yield
    except PipelineFailed as failed:
        complain(str(failed))
        raise typer.Exit(Exit.FAILED) from None


def engine(
    master: Annotated[str, _MASTER] = LOCAL,
    remote: Annotated[str | None, _REMOTE] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
) -> Callable[[bool], Engine]:
    """Where Spark computes, once it is known whether the work is short."""
    settings = dict(_setting(word) for word in conf or [])

    def make(quick: bool) -> Engine:
        return Engine(master, remote, quick, settings)

    return make


def _setting(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise typer.BadParameter(f"{word!r} is no setting: write spark.some.name=value")
    return name, value


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
    with failing():
        sights = [*examine()]
        if prepared:
            with patience("Preparing"):
                sights = [*sights[:-1], prepare()]
        if start:
            with patience("Starting Spark"):
                sights += try_out(engine(True))
    _show(sights, as_json=as_json)
    if any(sight.ok is False for sight in sights):
        raise typer.Exit(Exit.FAILED)


def _show(sights: list[Sight], *, as_json: bool) -> None:
    if as_json:
        for sight in sights:
            print_json(sight._asdict(), is_line=True)
        return
    words = {True: "yes", False: "no", None: "-"}
    rows = [(sight.thing, words[sight.ok], sight.text) for sight in sights]
    print_table(("WHAT", "OK", "WHICH"), rows)
