"""An archive of Spark's classes as Java has them in memory, which saves a second or two at start.

It is made once for every Java and Spark, by a process that does a little of everything and ends.
"""

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from pipeline.java import Java
from pipeline.places import cache

_MAKE_LIMIT_S = 600


def options_for_archive(java: Java) -> list[str]:
    """What Java is told, so that it uses the archive if there is one; or makes it."""
    making = os.environ.get("HOLDFAST_SPARK_ARCHIVE")
    if making:
        return [f"-XX:ArchiveClassesAtExit={making}", *_SILENT]
    place = archive_for(java)
    if not java.can_archive or not place.exists():
        return []
    return [f"-XX:SharedArchiveFile={place}", "-Xshare:auto", *_SILENT]


# One that does not fit is not used, and nothing is said.
_SILENT = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def archive_for(java: Java) -> Path:
    """Where the archive is, if it was made: one for each Java and each place where Spark is."""
    spec = find_spec("pyspark")
    key = hashlib.sha256(f"{java.home} {java.version} {spec and spec.origin}".encode())
    return cache() / f"classes-{version('pyspark')}-{key.hexdigest()[:12]}.jsa"


def make_archive(java: Java) -> bool:
    """Make the archive; whether there is one now."""
    place = archive_for(java)
    if not java.can_archive:
        return False
    part = place.with_suffix(f".{os.getpid()}")
    environment = {**os.environ, "HOLDFAST_SPARK_ARCHIVE": str(part)}
    try:
        subprocess.run(
            [sys.executable, "-m", "pipeline.warm_up"],
            env=environment,
            capture_output=True,
            timeout=_MAKE_LIMIT_S,
            check=True,
        )
        # Java gives it its name when it is complete.
        part.replace(place)
    except (OSError, subprocess.SubprocessError):
        return False
    finally:
        part.unlink(missing_ok=True)
    return True
