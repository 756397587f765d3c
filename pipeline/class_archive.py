"""An archive of Spark's classes in Java's memory format; it saves a second or two at each start.

A process that does a little of everything makes it, once for each Java and Spark.
"""

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from holdfast.pipeline.java import Java
from holdfast.pipeline.places import cache

_MAKE_LIMIT_S = 600


def options_for_archive(java: Java) -> list[str]:
    """Return the Java options that use the archive if it exists, or make it."""
    making = os.environ.get("HOLDFAST_SPARK_ARCHIVE")
    if making:
        return [f"-XX:ArchiveClassesAtExit={making}", *_SILENT]
    place = archive_for(java)
    if not java.can_archive or not place.exists():
        return []
    return [f"-XX:SharedArchiveFile={place}", "-Xshare:auto", *_SILENT]


# Java silently ignores an archive that does not fit.
_SILENT = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def archive_for(java: Java) -> Path:
    """Return the path of the archive: one for each Java and each Spark installation."""
    spec = find_spec("pyspark")
    key = hashlib.sha256(f"{java.home} {java.version} {spec and spec.origin}".encode())
    return cache() / f"classes-{version('pyspark')}-{key.hexdigest()[:12]}.jsa"


def make_archive(java: Java) -> bool:
    """Make the archive; return whether it exists now."""
    place = archive_for(java)
    if not java.can_archive:
        return False
    part = place.with_suffix(f".{os.getpid()}")
    environment = {**os.environ, "HOLDFAST_SPARK_ARCHIVE": str(part)}
    try:
        subprocess.run(
            [sys.executable, "-m", "holdfast.pipeline.warm_up"],
            env=environment,
            capture_output=True,
            timeout=_MAKE_LIMIT_S,
            check=True,
        )
        # The final name shows that the archive is complete.
        part.replace(place)
    except (OSError, subprocess.SubprocessError):
        return False
    finally:
        part.unlink(missing_ok=True)
    return True
