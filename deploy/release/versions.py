"""Where the version of this release is written, and what may follow it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from deploy.release.refused import Refused


class Place(NamedTuple):
    """Files, and how the version stands in them, as VERSION."""

    files: str
    text: str


PLACES = (
    Place("pyproject.toml", 'version = "VERSION"'),
    Place("pyproject.toml", "holdfast-bayeux-client==VERSION"),
    Place("static/js/package.json", '"version": "VERSION"'),
    Place("deploy/**/*.yaml", "VERSION"),
    Place("docs/**/*.md", "VERSION"),
)
# Updates from one release to another are examples on this page, with versions of their own.
EXAMPLES = "upgrading.md"


def current(root: Path) -> str:
    """Return the version of these sources."""
    found = re.search(r'(?m)^version = "(.+)"$', (root / "pyproject.toml").read_text())
    if found is None:
        raise Refused("pyproject.toml has no version")
    return found[1]


def check_order(old: str, new: str) -> None:
    """Raise `Refused` unless the new version is one that comes after the old one."""
    if re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", new) is None:
        raise Refused(f"{new} is not a version such as 1.2.3")
    if _numbers(new) <= _numbers(old):
        raise Refused(f"{new} is not newer than {old}, the version in pyproject.toml")


def set_version(root: Path, old: str, new: str) -> list[Path]:
    """Write the new version wherever the old one is; return the changed files."""
    return [*_changed(root, old, new)]


def _changed(root: Path, old: str, new: str) -> Iterator[Path]:
    for place in PLACES:
        pattern = _pattern(place.text, old)
        for path in sorted(root.glob(place.files)):
            text = path.read_text("utf-8")
            changed = pattern.sub(place.text.replace("VERSION", new), text)
            if changed != text and path.name != EXAMPLES:
                path.write_text(changed, "utf-8")
                yield path


def _pattern(text: str, version: str) -> re.Pattern[str]:
    """Find the version in this form, and not as a part of a longer one."""
    escaped = re.escape(text.replace("VERSION", version))
    return re.compile(rf"(?<![\d.]){escaped}(?!\d|\.\d)")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
