"""`holdfast doctor`: checks what a server and the pipeline need on this machine."""

from collections.abc import Iterable
from typing import Annotated

import typer

from holdfast.cli.failures import Exit
from holdfast.cli.flags import ConfigFile
from holdfast.cli.options import AsJson, OfData
from holdfast.cli.output import print_rows, print_table, spinner
from holdfast.cli.program import Program
from holdfast.cli.serve import read_settings, telling_failures
from holdfast.cli.server_checks import check_server, check_sources
from holdfast.cli.spark import ChosenEngine, silent_ctrl_c
from holdfast.pipeline.doctor import Check, examine, prepare, try_out

program = Program()

_WORDS = {True: "yes", False: "no", None: "-"}


@program.command()
def doctor(
    *,
    config: ConfigFile = None,
    data: OfData = None,
    pipeline: Annotated[
        bool, typer.Option(help="Fail if something for the pipeline is missing, too.")
    ] = False,
    start: Annotated[bool, typer.Option(help="Also start Spark; implies --pipeline.")] = False,
    prepared: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Make an archive that saves a second at starts of Spark; implies --pipeline.",
        ),
    ] = False,
    as_json: AsJson = False,
    engine: ChosenEngine,
) -> None:
    """Check what a server and the pipeline need; say how to fix faults.

    A dash marks what is missing but not needed. The exit code is 1 if the server cannot run.
    """
    with telling_failures():
        server = [*check_server(read_settings(config, {} if data is None else {"data": data}))]
    checks = [*examine()]
    needs_pipeline = pipeline or start or prepared
    if prepared and _is_well(checks):
        with spinner("Preparing"):
            checks[-1] = prepare()
    if start and _is_well(checks):
        with silent_ctrl_c(), spinner("Starting Spark"):
            checks += try_out(engine(True))
    if not needs_pipeline:
        checks = [check._replace(ok=check.ok or None) for check in checks]
    areas = {"server": server, "build": [*check_sources()], "pipeline": checks}
    rows = [(area, *check) for area, found in areas.items() for check in found]
    if as_json:
        print_rows(("area", *Check._fields), rows, as_json=True)
    else:
        shown = [(area, name, _WORDS[ok], text) for area, name, ok, text in rows]
        print_table(("FOR", "WHAT", "OK", "WHICH"), shown, wraps=True)
    if not _is_well(server) or (needs_pipeline and not _is_well(checks)):
        raise typer.Exit(Exit.FAILED)


def _is_well(checks: Iterable[Check]) -> bool:
    return all(check.ok is not False for check in checks)
