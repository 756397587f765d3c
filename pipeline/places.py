"""The directory for files that the pipeline can make again at any time."""

import os
from pathlib import Path


def cache() -> Path:
    """Return the cache directory of this user; create it if it is missing."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    place = Path(base) / "holdfast" / "spark"
    place.mkdir(parents=True, exist_ok=True)
    return place


def log_settings() -> Path:
    """Return Spark's log settings, which keep it quiet."""
    return Path(__file__).parent / "log4j2.properties"


def write_program(place: Path, text: str) -> None:
    """Write a script, even while others run it or write it."""
    if place.exists() and place.read_text("utf-8") == text:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.chmod(0o755)
    part.replace(place)
