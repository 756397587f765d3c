"""The digests of a table's files: a file is trusted once it has the digest that it began with.

A disk may return other bytes than were written. Parquet reads most of them back as other values, so
only a digest of the whole file finds them. The digest of a data file is part of its name, and
therefore of the commit that adds it, of every checkpoint, and of whatever another program makes of
these.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.storage.place import each, mark_of, move, pieces, write_text

# Hexadecimal digits of SHA-256: half of them, which is enough to find damage.
_DIGITS = 32
_NAMED = re.compile(rf"-sha256-([0-9a-f]{{{_DIGITS}}})\.parquet$")
ALTERED = "was changed after it was written"
# Files that this process has checked, as they were then. When there are more, it begins again.
_CHECKED: dict[str, tuple[int, ...]] = {}
_MOST_CHECKED = 100_000


def digest_of(file: Path) -> str:
    """Return the digest of what the file contains now."""
    return digest_of_pieces(pieces(file))


def digest_of_pieces(content: Iterable[bytes]) -> str:
    """Return the digest of this content."""
    found = hashlib.sha256()
    for piece in content:
        found.update(piece)
    return found.hexdigest()[:_DIGITS]


def given(name: str) -> str | None:
    """Return the digest in a file's name; None if an earlier version or a stranger named it."""
    found = _NAMED.search(name)
    return None if found is None else found[1]


def has_digest(file: Path) -> bool:
    """Return whether the file can be checked; who else wrote it gave it no digest."""
    return given(file.name) is not None


def another_name(file: Path) -> str:
    """Return a new name for the same content, with its digest."""
    return f"{uuid4().hex}-sha256-{given(file.name) or digest_of(file)}.parquet"


def move_with_digest(draft: Path, folder: Path) -> str:
    """Move a finished file to a folder, so that its name has its digest; return the name."""
    name = another_name(draft)
    move(draft, folder / name)
    return name


def altered(wanted: Mapping[Path, str]) -> Iterable[Path]:
    """Yield the files that do not have these digests any more; files that are gone are ignored."""
    files = [*wanted]
    found = each(lambda file: _is_right(file, wanted[file]), files)
    yield from (file for file, is_right in zip(files, found, strict=True) if not is_right)


def _is_right(file: Path, digest: str) -> bool:
    """Return whether a file has this digest, unless it is gone."""
    try:
        now = mark_of(file)
        if _CHECKED.get(str(file)) == now:
            return True
        if digest_of(file) != digest:
            return False
    except FileNotFoundError:
        return True
    if len(_CHECKED) >= _MOST_CHECKED:
        _CHECKED.clear()
    _CHECKED[str(file)] = now
    return True


def altered_files(files: Iterable[Path]) -> Iterable[Path]:
    """Yield the data files that are not as they were written, as far as their names tell."""
    return altered({file: digest for file in files if (digest := given(file.name)) is not None})


def write_sealed(place: Path, value: object) -> None:
    """Write JSON with its digest; a kill leaves the earlier file intact."""
    write_text(place, sealed(value))


def sealed(value: object) -> str:
    """Return JSON and, in another line, its digest."""
    text = json.dumps(value)
    return f"{text}\n{_digest(text)}\n"


def read_sealed(place: Path) -> Any:  # noqa: ANN401 - JSON enters here
    """Return what was written; earlier versions wrote no digest.

    Raises:
        PipelineFailed: It was changed since.
    """
    text, _, digest = place.read_text("utf-8", "replace").partition("\n")
    if digest and digest.rstrip("\n") != _digest(text):
        raise PipelineFailed(f"{place} {ALTERED}")
    try:
        return json.loads(text)
    except ValueError:
        raise PipelineFailed(f"{place} {ALTERED}") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
