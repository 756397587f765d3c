"""What a Python process has imported, by what `-X importtime` printed."""

import sys


def modules_in(log: str) -> set[str]:
    """The imported modules."""
    lines = (line for line in log.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


def foreign_modules_in(log: str) -> set[str]:
    """The imported modules without Python's own, which differ from version to version."""
    found = modules_in(log)
    return {name for name in found if name.partition(".")[0] not in sys.stdlib_module_names}


def packages_in(log: str) -> set[str]:
    """The packages of the imported modules."""
    return {name.partition(".")[0] for name in modules_in(log)}
