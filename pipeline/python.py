"""The Python that Spark starts here: the one that runs already, and what it has installed.

Spark would have it import a zip that it brings, in which nothing is compiled: half a second for
each of the five that an ingest starts, one after the other.
"""

import hashlib
import sys
from pathlib import Path

from pipeline.places import cache, write_program

# What was given to us comes behind the zips.
_SHIM = """#!/bin/sh
PYTHONPATH="${{PYTHONPATH##*-src.zip:}}" exec "{python}" "$@"
"""


def python_for_spark() -> Path:
    """A program in front of this Python that forgets the zips."""
    key = hashlib.sha256(sys.executable.encode()).hexdigest()[:12]
    place = cache() / f"python-{key}" / "python"
    write_program(place, _SHIM.format(python=sys.executable))
    return place
