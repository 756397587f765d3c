"""`holdfast restart`: replaces a running server by one of the installed code, under traffic."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.failures import Exit, failed
from holdfast.cli.options import AsJson, OfData
from holdfast.cli.output import Json, answer, note, print_json
from holdfast.cli.program import Program
from holdfast.cli.remote import data_directory
from holdfast.supervisor.asking import ask
from holdfast.supervisor.control import CONTROL_FILE, Do

program = Program()

_STEPS: dict[str, str] = {
    "starting": "the new server starts; the old one goes on",
    "prepared": "the new server is prepared; the old one leaves",
    "left": "the old server has left; the new one opens the store",
    "ready": "the new server is ready",
}


@program.command()
def restart(
    *,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="Time within which the new server must be ready; default: the server's "
            "restart_timeout.",
        ),
    ] = None,
    data: OfData = None,
    as_json: AsJson = False,
) -> None:
    """Replace a running server by one of the installed version.

    The new server has the present settings and extensions. Clients stay connected. If it cannot
    start, the old one goes on; the command says why, and its exit code is 1.

    Example: holdfast restart --timeout 30
    """
    path = (data or data_directory()) / CONTROL_FILE
    for told in _told(path, timeout):
        if told.get("done"):
            answer(told, "the server has been restarted", as_json=as_json)
            return
        if "failed" in told:
            if as_json:
                print_json(told, is_line=True)
            raise failed(f"the restart has failed{_outcome(told)}: {told['failed']}")
        if not as_json:
            note(_STEPS.get(told["step"]) or told["step"])
    raise failed("the supervisor ended before the restart did: see its log")


def _outcome(told: Json) -> str:
    """Say what serves after a restart that has failed, as far as that is known."""
    if told.get("another"):
        became = "serves" if told.get("serving") else "starts"
        return f", the old server has ended, and another one {became} in its place"
    return ", and the old server goes on" if told.get("serving") else ""


def _told(path: Path, timeout_s: float | None) -> Iterator[Json]:
    """Ask for a restart; yields what the supervisor tells."""
    limit = {} if timeout_s is None else {"timeout": timeout_s}
    try:
        yield from ask(path, do=Do.RESTART, **limit)
    except OSError as error:
        raise failed(_advice(path, error), Exit.UNREACHABLE) from None


def _advice(path: Path, error: OSError) -> str:
    return (
        f"{path}: {error.strerror or error}. Is a server running there, with a supervisor? Name "
        "its data directory with --data. Without a supervisor, stop the server and start it again"
    )
