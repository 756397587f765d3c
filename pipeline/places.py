"""Where the pipeline keeps what it can make again at any time."""

import os
from pathlib import Path


def cache() -> Path:
    """A directory of this user's, made when first asked for."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    place = Path(base) / "holdfast" / "spark"
    place.mkdir(parents=True, exist_ok=True)
    return place


def log_settings() -> Path:
    """What Spark reads at its start: how little it says."""
    return Path(__file__).parent / "log4j2.properties"


def write_program(place: Path, text: str) -> None:
    """A script that others may be running, or making, at this moment."""
    if place.exists() and place.read_text("utf-8") == text:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.chmod(0o755)
    part.replace(place)
