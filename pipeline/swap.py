"""Replaces folders of tables by others; a kill never leaves a swap half done.

The swap is first recorded. The next process that opens the tables completes it, and nobody reads
the tables until then.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from typing import TextIO

from holdfast.pipeline.batches import EVENTS, MADE, check, swapped
from holdfast.pipeline.lake import Lake, receipt_of, remove, write_down

# Readers of tables ignore names that begin with an underscore.
_NOTE = "_swap.json"
_LOCK = "_lock"


@contextmanager
def reading(lake: Lake, tables: Iterable[str] = (*EVENTS, *MADE)) -> Iterator[None]:
    """Keep the folders of tables in place while they are read.

    Raises:
        PipelineFailed: There is nothing to read, or a part of it is gone.
    """
    # Do not create a folder where there are no tables.
    lake.newest()
    with steady(lake):
        check(lake, lake.newest(), tables)
        yield


@contextmanager
def steady(lake: Lake) -> Iterator[None]:
    """Keep folders in place; several processes may read, and one may ingest."""
    while True:
        with _locked(lake, LOCK_SH):
            if not (lake.root / _NOTE).exists():
                yield
                return
        with changing(lake):
            pass


@contextmanager
def changing(lake: Lake) -> Iterator[None]:
    """Lock out all other readers and writers; first complete an unfinished swap."""
    with _locked(lake, LOCK_EX):
        _finish(lake)
        yield


@contextmanager
def keeping_up(lake: Lake, tables: Iterable[str] = (*EVENTS, *MADE)) -> Iterator[None]:
    """Lock out other upkeep; ingest and reports continue.

    Args:
        tables: Those that must be whole for it.

    Raises:
        PipelineFailed: Another upkeep is running, or there are no tables.
    """
    # Do not create a folder where there are no tables.
    lake.newest()
    with lake.alone("upkeep"):
        with reading(lake, tables):
            pass
        yield


@contextmanager
def unread(lake: Lake) -> Iterator[bool]:
    """Try to lock out all readers and writers; yield whether that succeeded."""
    with _opened(lake) as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
            is_so = True
        except BlockingIOError:
            is_so = False
        yield is_so


@contextmanager
def _locked(lake: Lake, how: int) -> Iterator[None]:
    with _opened(lake) as file:
        flock(file, how)
        yield


def _opened(lake: Lake) -> TextIO:
    lake.root.mkdir(parents=True, exist_ok=True)
    return (lake.root / _LOCK).open("a")


def replace(lake: Lake, old: Iterable[Path], new: Mapping[Path, Path]) -> None:
    """Remove these folders, and move new ones from their place to their destination.

    All of them are within the lake; the caller has locked it.
    """
    told = {
        "old": [_name(lake, place) for place in old],
        "new": {_name(lake, place): _name(lake, aim) for place, aim in new.items()},
    }
    note = lake.root / _NOTE
    write_down(note, told)
    _finish(lake)


def _name(lake: Lake, place: Path) -> str:
    return str(place.relative_to(lake.root))


def _finish(lake: Lake) -> None:
    """Complete the recorded swap."""
    note = lake.root / _NOTE
    if not note.exists():
        return
    told = json.loads(note.read_text("utf-8"))
    for name in told["old"]:
        # It may be the new folder already, if that replaced the old one.
        if name not in told["new"].values() or _is_to_come(lake, told["new"], name):
            remove(lake.root / name)
    for name, aim in told["new"].items():
        _move(lake.root / name, lake.root / aim)
        _move(receipt_of(lake.root / name), receipt_of(lake.root / aim))
    swapped(lake, told["old"], told["new"].values())
    note.unlink()


def _move(place: Path, aim: Path) -> None:
    if place.exists():
        aim.parent.mkdir(parents=True, exist_ok=True)
        place.rename(aim)


def _is_to_come(lake: Lake, new: Mapping[str, str], aim: str) -> bool:
    return any(place == aim and (lake.root / name).exists() for name, place in new.items())
