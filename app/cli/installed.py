"""What is installed: the version, and whether the core is compiled."""

import platform
import sys

from holdfast.distribution import core, release


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
