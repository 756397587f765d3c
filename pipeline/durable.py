"""Writes files that survive a power cut, which may leave other files empty."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Return once the file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(place: Path, text: str) -> None:
    """Write a file; a kill leaves the earlier one intact."""
    draft = place.with_suffix(".draft")
    draft.write_text(text, "utf-8")
    sync(draft)
    draft.rename(place)
