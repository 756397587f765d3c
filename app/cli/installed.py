"""What is installed: the version, and whether the core is compiled."""

import platform
import sys
from importlib.util import find_spec

from holdfast.distribution import release


def core() -> str:
    """Say whether the core is compiled."""
    found = find_spec("holdfast.bayeux.exchanges")
    is_source = found is None or str(found.origin).endswith(".py")
    return "interpreted" if is_source else "compiled"


def facts() -> dict[str, str]:
    """Return what is installed, and on what it runs."""
    return {
        "version": release(),
        "core": core(),
        "python": platform.python_version(),
        "system": f"{sys.platform} {platform.machine()}",
    }


def summary() -> str:
    """Return the same on a line."""
    return "holdfast {version} ({core} core, Python {python}, {system})".format_map(facts())
