"""Which batches of a table there must be: all that were committed, but for those taken away.

What upkeep takes away is written down beside the tables. What else is not there was lost, and
whoever counted without it would count wrong.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from pipeline.failures import PipelineFailed
from pipeline.lake import Lake, batch_of, write_down

EVENTS = ("events",)
# What is made from events.
MADE = ("life", "messages", "lost", "latency", "dead")
# In these each batch has a folder, even if there is nothing in it.
_WHOLE = ("events", "life", "latency", "dead")
_NAME = "_batches.json"


def check(lake: Lake, newest: int, tables: Iterable[str]) -> None:
    """See that tables are whole.

    Raises:
        PipelineFailed: A folder is not, or is a file of no bytes, as a power cut leaves it: Spark
            would pass over that in silence.
    """
    for table in tables:
        folders = {batch_of(each): each for each in (lake.root / table).glob("batch=*")}
        missing = sorted(due(lake, table, newest) - folders.keys())
        if missing:
            more = f", and {len(missing) - 1} more" if missing[1:] else ""
            raise _lost(table, lake.folder(table, missing[0]), f"is not there{more}", "make it")
        for number, folder in folders.items():
            for file in folder.rglob("*.parquet") if number <= newest else ():
                if not file.stat().st_size:
                    raise _lost(table, file, "is empty", "remove it")


def _lost(table: str, place: Path, how: str, instead: str) -> PipelineFailed:
    anew = "holdfast pipeline backfill makes it anew"
    if table in EVENTS:
        anew = (
            "ingest anew into another --lake what the journal still has, or "
            f"{instead} and do without"
        )
    return PipelineFailed(f"{place} {how}: what was in it is lost; {anew}")


def due(lake: Lake, table: str, newest: int) -> set[int]:
    """The batches of which there must be a folder."""
    if table not in _WHOLE:
        return set()
    until, left = _left(lake).get(table, (-1, []))
    return {*left, *range(until + 1, newest + 1)}


def _left(lake: Lake) -> dict[str, tuple[int, list[int]]]:
    """By table, up to which batch some may be gone, and which of these are not."""
    try:
        told: dict[str, tuple[int, list[int]]] = json.loads((lake.root / _NAME).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return told


def swapped(lake: Lake, old: Iterable[str], new: Iterable[str]) -> None:
    """Folders of these names were taken away, and those put in; to be told again after a kill."""
    gone, come = _by_table(old), _by_table(new)
    newest, told = lake.newest(), _left(lake)
    for table in (gone.keys() | come.keys()) & {*_WHOLE}:
        left = due(lake, table, newest) - gone.get(table, set()) | come.get(table, set())
        told[table] = newest, sorted(left)
    write_down(lake.root / _NAME, told)


def _by_table(names: Iterable[str]) -> dict[str, set[int]]:
    """Whole folders of batches; single days of one are its own affair."""
    found: dict[str, set[int]] = {}
    for name in names:
        table, *folder = Path(name).parts
        if len(folder) == 1:
            found.setdefault(table, set()).add(batch_of(Path(folder[0])))
    return found
