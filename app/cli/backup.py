"""`holdfast backup`: backs up a running deployment."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.deployment import settings_of
from holdfast.cli.flags import ConfigFile
from holdfast.cli.options import AsJson, OfData
from holdfast.cli.output import answer, spinner, when
from holdfast.cli.program import Program
from holdfast.offline.backup import back_up
from holdfast.offline.manifest import Manifest
from holdfast.units import counted

program = Program()


@program.command()
def backup(
    directory: Annotated[Path, typer.Argument(help="A new directory for the backup.")],
    *,
    config: ConfigFile = None,
    data: OfData = None,
    as_json: AsJson = False,
) -> None:
    """Back up the stores of a running server, with all its workers.

    The server goes on. Each store is backed up as it was at one moment, which the command says. The
    directory appears when the backup is complete.

    Example: holdfast backup /backups/monday
    """
    with settings_of(config, data) as settings, spinner("Backing up"):
        found = asyncio.run(back_up(settings, directory))
    answer(found.to_json(), _text(found, directory), as_json=as_json)


def _text(found: Manifest, directory: Path) -> str:
    lines = [
        f"shard {store.shard}: {when(store.time)}, {counted(store.bytes, 'byte')}"
        for store in found.stores
    ]
    if len(lines) > 1:
        lines.append(f"all within {found.spread_ms} ms")
    return "\n".join([f"the backup is in {directory}", *lines])
