"""The section of a release in the changelog, and its notes."""

import re

from deploy.release.refused import Refused

UNRELEASED = "## Unreleased\n"
# No index is asked for the package: its files are beside the notes.
_INSTALL = """In the folder with the files of this release:

```sh
python3 -m venv .venv && .venv/bin/pip install --find-links . holdfast-bayeux
```
"""


def cut(text: str, version: str, day: str) -> str:
    """Return the changelog with a section of this version, and an empty one for what comes next."""
    head, found, rest = text.partition(UNRELEASED)
    if not found:
        raise Refused("CHANGELOG.md has no section Unreleased")
    if not rest.partition("\n## ")[0].strip():
        raise Refused("the section Unreleased of CHANGELOG.md is empty: say what has changed")
    if f"\n## {version} " in text:
        raise Refused(f"CHANGELOG.md has a section of {version} already")
    return f"{head}{UNRELEASED}\n## {version} - {day}\n{rest}"


def notes(text: str, version: str) -> str:
    """Return what the changelog says of this version, as a page of its own."""
    section = text.partition(f"\n## {version} ")[2].partition("\n## ")[0]
    # Behind the date of its heading; other headings move up by one level.
    _, _, body = section.partition("\n")
    raised = re.sub(r"(?m)^#(?=#+ )", "", body)
    return f"# Holdfast {version}\n\n{_INSTALL}{raised.rstrip()}\n"
