"""Determines which batches each table must have: all committed ones that upkeep has not removed.

Upkeep records what it removes beside the tables. Any other missing batch was lost, and counting
without it would give wrong results.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import (
    Lake,
    batch_of,
    folder_of,
    missing,
    receipt_of,
    receipts,
    write_down,
)

EVENTS = ("events",)
# The tables that derive from events.
MADE = ("life", "messages", "lost", "latency")
# In these tables each batch has a folder, even if it is empty.
_WHOLE = ("events", "life", "latency")
_NAME = "_batches.json"


def check(lake: Lake, newest: int, tables: Iterable[str]) -> None:
    """Check that tables are complete.

    Raises:
        PipelineFailed: A folder or a file is gone, or is of no bytes, as a power cut leaves it:
            Spark would pass over that in silence.
    """
    for table in tables:
        places = [lake.folder(table, batch) for batch in sorted(due(lake, table, newest))]
        refuse([place for place in places if not place.exists()], "is missing")
        for folder in (lake.root / table).glob("batch=*"):
            if batch_of(folder) <= newest:
                refuse(missing(folder), "is missing")
                files = folder.rglob("*.parquet")
                refuse([file for file in files if not file.stat().st_size], "is empty")


def refuse(lost: Sequence[Path], how: str) -> None:
    """Raise an error that lists what was lost and says what to do, if anything was lost."""
    if lost:
        more = f", and {len(lost) - 1} more" if lost[1:] else ""
        what, anew = f"{lost[0]} {how}{more}: its rows are lost", _anew(lost[0])
        raise PipelineFailed(f"{what}; {anew}")


def _anew(place: Path) -> str:
    folder = folder_of(place)
    if folder.parent.name not in EVENTS:
        return "rebuild it with holdfast pipeline backfill"
    without = [f"remove {place}"] if place.exists() else [f"make {place}"] * (place == folder)
    without += [f"remove {receipt_of(folder)}"] * receipt_of(folder).exists()
    return (
        "ingest anew into another --lake what the journal still has, or "
        f"{' and '.join(without)}, and do without"
    )


def due(lake: Lake, table: str, newest: int) -> set[int]:
    """Return the batches that must have a folder."""
    received = {batch_of(each) for each in receipts(lake.root / table)}
    found = {batch for batch in received if batch <= newest}
    if table in _WHOLE:
        until, left = _left(lake).get(table, (-1, []))
        found |= {*left, *range(until + 1, newest + 1)}
    return found


def _left(lake: Lake) -> dict[str, tuple[int, list[int]]]:
    """By table: the last batch up to which some may be removed, and those that remain."""
    try:
        told: dict[str, tuple[int, list[int]]] = json.loads((lake.root / _NAME).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return told


def swapped(lake: Lake, old: Iterable[str], new: Iterable[str]) -> None:
    """Record that folders were replaced by others; repeat the call after a kill."""
    gone, come = _by_table(old), _by_table(new)
    newest, told = lake.newest(), _left(lake)
    for table in (gone.keys() | come.keys()) & {*_WHOLE}:
        left = due(lake, table, newest) - gone.get(table, set()) | come.get(table, set())
        told[table] = newest, sorted(left)
    write_down(lake.root / _NAME, told)


def _by_table(names: Iterable[str]) -> dict[str, set[int]]:
    """Group whole folders of batches by table; single days of a batch are not recorded."""
    found: dict[str, set[int]] = {}
    for name in names:
        table, *folder = Path(name).parts
        if len(folder) == 1:
            found.setdefault(table, set()).add(batch_of(Path(folder[0])))
    return found
