"""What the commands that work on all stores of a deployment have in common."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from holdfast.cli.failures import Exit
from holdfast.cli.output import complain
from holdfast.cli.serve import read_settings
from holdfast.compose.cannot_start import CannotStart
from holdfast.settings import Settings
from holdfast.store.links.connection import StoreUnavailable


@contextmanager
def settings_of(
    config: Path | None, data: Path | None, head: str = "holdfast:"
) -> Iterator[Settings]:
    """Read the settings of the deployment. A failure inside ends the program.

    Args:
        head: What precedes the reason of a failure.
    """
    try:
        yield read_settings(config, {} if data is None else {"data": data})
    except (CannotStart, StoreUnavailable) as error:
        complain(str(error), head)
        raise typer.Exit(Exit.FAILED) from None
