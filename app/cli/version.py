"""`holdfast version`: shows what is installed."""

import platform
import sys
from importlib.metadata import version as version_of
from importlib.util import find_spec

from holdfast.cli.options import AsJson
from holdfast.cli.output import answer
from holdfast.cli.program import Program

program = Program()


def core() -> str:
    """Say whether the core is compiled."""
    found = find_spec("holdfast.bayeux.exchanges")
    is_source = found is None or str(found.origin).endswith(".py")
    return "interpreted" if is_source else "compiled"


@program.command()
def version(*, as_json: AsJson = False) -> None:
    """Show the version, and whether the core is compiled."""
    found = {
        "version": version_of("holdfast"),
        "core": core(),
        "python": platform.python_version(),
        "system": f"{sys.platform} {platform.machine()}",
    }
    text = "holdfast {version} ({core} core, Python {python}, {system})"
    answer(found, text.format_map(found), as_json=as_json)
