"""Brings files of tables to this machine, for libraries that read no buckets."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from holdfast.pipeline.digests import ALTERED, digest_of_pieces, given
from holdfast.pipeline.lake import check, refuse
from holdfast.pipeline.storage.place import each, is_on_disk, pieces


def fetched(files: Sequence[Path], scratch: Path) -> Sequence[Path]:
    """Return the paths of files on this machine, which are as they were written.

    Args:
        scratch: The folder for those that are elsewhere; each is read once.

    Raises:
        PipelineFailed: A file is missing or changed.
    """
    if all(map(is_on_disk, files)):
        check(files)
        return files
    faults = zip(files, each(partial(_fetch, scratch), files), strict=True)
    refuse({file: fault for file, fault in faults if fault is not None})
    return [_place_in(scratch, file) for file in files]


def _place_in(scratch: Path, file: Path) -> Path:
    """Return where the copy goes. Its folders keep their names, because a day is read from one."""
    return scratch.joinpath(*file.parts[-3:])


def _fetch(scratch: Path, file: Path) -> str | None:
    """Copy a file, unless it was; return what happened to it, if it cannot be used."""
    copy = _place_in(scratch, file)
    if copy.exists():
        return None
    copy.parent.mkdir(parents=True, exist_ok=True)
    draft = copy.with_suffix(".draft")
    try:
        digest = digest_of_pieces(_copied(pieces(file), draft))
    except FileNotFoundError:
        return "is missing"
    if digest != (given(file.name) or digest):
        return ALTERED
    draft.rename(copy)
    return None


def _copied(content: Iterable[bytes], place: Path) -> Iterator[bytes]:
    with place.open("wb") as file:
        for piece in content:
            file.write(piece)
            yield piece
