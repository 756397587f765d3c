"""The Python for local Spark workers: the running one, with its installed packages.

Spark would make it import an uncompiled zip, which takes half a second for each of the five
processes that an ingest starts one after another.
"""

import hashlib
import sys
from pathlib import Path

from holdfast.pipeline.places import cache, write_program

# Entries that the user has set come after the zips.
_SHIM = """#!/bin/sh
PYTHONPATH="${{PYTHONPATH##*-src.zip:}}" exec "{python}" "$@"
"""

# A variable for processes that do the work. Arrow's own pool keeps much of the memory that it has
# used, and takes more time to get it.
ARROW_POOL = ("ARROW_DEFAULT_MEMORY_POOL", "system")


def python_for_spark() -> Path:
    """Return a program that starts this Python without the zips."""
    key = hashlib.sha256(sys.executable.encode()).hexdigest()[:12]
    place = cache() / f"python-{key}" / "python"
    write_program(place, _SHIM.format(python=sys.executable))
    return place
