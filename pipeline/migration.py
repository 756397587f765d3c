"""Converts events of an older version: their folders, and their moves.

The other tables are then rebuilt; until then, the tables count as of the older version.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import Kind
from holdfast.pipeline.arrow import ARROW, opened
from holdfast.pipeline.backfill import check_reach
from holdfast.pipeline.copies import DAY_NS, first_id
from holdfast.pipeline.digests import another_name
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import EVENTS, MADE, Lake, NewFile, check, refuse
from holdfast.pipeline.source.event_files import write_events
from holdfast.pipeline.source.moves import ADDED, NEEDED, taken_back
from holdfast.pipeline.storage.place import remove_all
from holdfast.pipeline.table_files import File, paths_of

_OTHERS = ("_checkpoint", "_receipts")


def take_over(lake: Lake) -> None:
    """Make a first state of the events of an older version; it can be repeated after a kill.

    Raises:
        PipelineFailed: There are no events, or files of them are lost, or an upkeep of the older
            version is unfinished.
    """
    if lake.state() is not None:
        return
    if (lake.root / "_swap.json").exists():
        raise PipelineFailed(
            f"{lake.root} has a compact, retain or backfill that was killed: finish it with the "
            "older holdfast first"
        )
    commits = (lake.root / "_checkpoint/commits").glob("[0-9]*")
    newest = max((int(file.name) for file in commits), default=-1)
    files = [*_files(lake, newest)]
    if not files:
        raise PipelineFailed(f"the tables in {lake.root} have no events: move them away")
    first = min((file.parent.name.removeprefix("d=") for file in files), default="9")
    check_reach(lake.root.glob("life/batch=*/*/*.parquet"), first)
    lake.create()
    lake.note_narrow()
    made = []
    for file in files:
        # Whatever happened to the file before, from now on it is known.
        name = f"{file.parent.name}/{another_name(file)}"
        made.append(NewFile(EVENTS, name))
        aim = lake.root / EVENTS / name
        aim.parent.mkdir(exist_ok=True)
        aim.hardlink_to(file)
    offset = (lake.root / "_checkpoint/offsets" / str(newest)).read_text("utf-8").splitlines()[-1]
    lake.commit(made, json.loads(offset), replaced=MADE)


def _files(lake: Lake, newest: int) -> Iterator[Path]:
    """Yield the files of events of all committed batches."""
    for folder in sorted((lake.root / EVENTS).glob("batch=*")):
        if int(folder.name.partition("=")[2]) <= newest:
            _check_receipt(lake.root / "_receipts" / EVENTS / folder.name, folder)
            yield from sorted(folder.glob("d=*/*.parquet"))


def _check_receipt(receipt: Path, folder: Path) -> None:
    names = json.loads(receipt.read_bytes()) if receipt.exists() else []
    refuse({folder / name: "is missing" for name in names if not (folder / name).exists()})


def take_back(lake: Lake) -> None:
    """Add the publishes that an older version lacks: see `holdfast.pipeline.source.moves`.

    It can be repeated after a kill.
    """
    with lake.changing():
        files = lake.found(EVENTS, at=lake.state())
        check(paths_of(files))
        if _is_done(files):
            return
        # The messages of a day fit into memory. Messages of removed days stay as they are.
        days = sorted({file.day for file in files if file.day is not None})
        made = (_taken_back(files, date.fromisoformat(day)) for day in days)
        receipts = write_events((rows for rows in made if len(rows)), lake.root / EVENTS)
        names = {name for receipt in receipts for name in receipt.column("file").to_pylist()}
        lake.open(EVENTS).exchange((), names, is_same=False)


def _is_done(files: Iterable[File]) -> bool:
    is_added = (pc.field("pos") == ADDED) & _is(Kind.PUBLISHED)
    return bool(opened(paths_of(files), ARROW).count_rows(filter=is_added))


def _taken_back(files: Iterable[File], day: date) -> pa.RecordBatch:
    """Return the publishes that the messages of a day lack."""
    begin = first_id(day)
    about = paths_of(file for file in files if file.may_have(begin, begin + DAY_NS))
    events = opened(about, NEEDED)
    of_day = (pc.field("msg") >= begin) & (pc.field("msg") < begin + DAY_NS)
    moves = events.to_table(filter=of_day & _is(Kind.MOVED))
    moved = pc.field("msg").isin(pc.unique(moves["msg"]))
    published = events.to_table(filter=of_day & _is(Kind.PUBLISHED) & moved)
    return taken_back(pa.concat_tables([each.cast(NEEDED) for each in (moves, published)]))


def _is(kind: str) -> pc.Expression:
    return pc.field("kind").cast(pa.string()) == kind


def clean_up(lake: Lake) -> None:
    """Remove the files that only the older version needs, once the tables are rebuilt."""
    lake.sign()
    places = [lake.root / name for name in _OTHERS]
    for place in (*places, *lake.root.glob("*/batch=*")):
        remove_all(place)
