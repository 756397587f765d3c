"""`holdfast restore`: restores a deployment from a backup."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.deployment import settings_of
from holdfast.cli.flags import ConfigFile
from holdfast.cli.options import AsJson, OfData
from holdfast.cli.output import answer, spinner, when
from holdfast.cli.program import Program
from holdfast.offline.manifest import Manifest
from holdfast.offline.restore import restore as put_back

program = Program()


@program.command()
def restore(
    directory: Annotated[Path, typer.Argument(help="The directory of the backup.")],
    *,
    config: ConfigFile = None,
    data: OfData = None,
    as_json: AsJson = False,
) -> None:
    """Restore the stores of a backup into a data directory that has none.

    No server may run there. Then start the server with as many workers as the backup has shards.

    Example: holdfast restore /backups/monday --data /var/lib/holdfast
    """
    with settings_of(config, data) as settings, spinner("Restoring"):
        found = asyncio.run(put_back(settings, directory))
    told = {**found.to_json(), "data": str(settings.data)}
    answer(told, _text(found, settings.data), as_json=as_json)


def _text(found: Manifest, data: Path) -> str:
    first = found.stores[0]
    return (
        f"restored into {data}, as it was at {when(first.time)}: start the server there with "
        f"--workers {len(found.stores)}"
    )
