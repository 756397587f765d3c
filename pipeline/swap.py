"""Folders of tables replaced by others: whoever is killed meanwhile leaves none of it half done.

What is to be done is written down first. Whoever opens the tables next does the rest of it; and as
long as it is done, nobody reads them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from typing import TextIO

from pipeline.batches import EVENTS, MADE, check, swapped
from pipeline.lake import Lake, receipt_of, remove, write_down

# Names that begin like this are nothing to whoever reads tables.
_NOTE = "_swap.json"
_LOCK = "_lock"


@contextmanager
def reading(lake: Lake, tables: Iterable[str] = (*EVENTS, *MADE)) -> Iterator[None]:
    """Folders of tables that are to be read stay where they are meanwhile.

    Raises:
        PipelineFailed: There is nothing to read, or a part of it is gone.
    """
    # Where there is nothing no folder is to be made.
    lake.newest()
    with steady(lake):
        check(lake, lake.newest(), tables)
        yield


@contextmanager
def steady(lake: Lake) -> Iterator[None]:
    """Folders stay where they are meanwhile; several may read, and one may ingest."""
    while True:
        with _locked(lake, LOCK_SH):
            if not (lake.root / _NOTE).exists():
                yield
                return
        with changing(lake):
            pass


@contextmanager
def changing(lake: Lake) -> Iterator[None]:
    """Nobody else reads or changes folders meanwhile; what was left half done is done first."""
    with _locked(lake, LOCK_EX):
        _finish(lake)
        yield


@contextmanager
def keeping_up(lake: Lake, tables: Iterable[str] = (*EVENTS, *MADE)) -> Iterator[None]:
    """Only one keeps up the tables at a time; ingest and reports go on.

    Args:
        tables: Those that must be whole for it.

    Raises:
        PipelineFailed: Somebody does already, or there is nothing to keep up.
    """
    # Where there is nothing no folder is to be made.
    lake.newest()
    with lake.alone("upkeep"):
        with reading(lake, tables):
            pass
        yield


@contextmanager
def unread(lake: Lake) -> Iterator[bool]:
    """Whether nobody reads or changes folders; if so, nobody does meanwhile."""
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
    """Remove these folders and put new ones, from where they are, where they are to be.

    All of them are below the lake's; the caller has it to itself.
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
    """Do what is written down, or the rest of it."""
    note = lake.root / _NOTE
    if not note.exists():
        return
    told = json.loads(note.read_text("utf-8"))
    for name in told["old"]:
        # It may be the new one already, if that has the old one's place.
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
