"""`holdfast restart`: replaces a running server by one of the installed code, under traffic."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.failures import Exit
from holdfast.cli.options import AsJson, OfData
from holdfast.cli.output import Json, answer, complain, note, print_json
from holdfast.cli.program import Program
from holdfast.cli.remote import data_directory
from holdfast.supervisor.control import CONTROL_FILE

program = Program()

# A supervisor that becomes new code, after a former restart, closes connections without a word.
_ATTEMPTS = 5
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
            former = ", and the old server goes on" if told.get("serving") else ""
            complain(f"the restart has failed{former}: {told['failed']}")
            raise typer.Exit(Exit.FAILED)
        if not as_json:
            note(_STEPS.get(told["step"]) or told["step"])
    complain("the supervisor ended before the restart did: see its log")
    raise typer.Exit(Exit.FAILED)


def _told(path: Path, timeout_s: float | None) -> Iterator[Json]:
    """Ask for a restart; yields what the supervisor tells."""
    request = {"do": "restart"} if timeout_s is None else {"do": "restart", "timeout": timeout_s}
    for _ in range(_ATTEMPTS):
        try:
            with socket.socket(socket.AF_UNIX) as supervisor:
                supervisor.connect(str(path))
                supervisor.sendall(json.dumps(request).encode())
                with supervisor.makefile(encoding="utf-8") as lines:
                    if first := lines.readline():
                        yield json.loads(first)
                        yield from map(json.loads, lines)
                        return
        except ConnectionResetError:
            pass
        except OSError as error:
            complain(_advice(path, error))
            raise typer.Exit(Exit.UNREACHABLE) from None


def _advice(path: Path, error: OSError) -> str:
    return (
        f"{path}: {error.strerror or error}. Is a server running there, with a supervisor? Name "
        "its data directory with --data. Without a supervisor, stop the server and start it again"
    )
