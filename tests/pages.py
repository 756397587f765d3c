"""The documentation as tests read it: its pages, their links, headings and blocks of code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
USUAL_PLACE = "127.0.0.1:8080"

_BLOCK = re.compile(r"(?:<!-- run: (\w+) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of code; `kind` says how a test runs it, if it stands under a mark for that."""

    kind: str
    language: str
    text: str

    def at(self, place: str) -> str:
        """The code with another server in it."""
        assert USUAL_PLACE in self.text
        return self.text.replace(USUAL_PLACE, place)


def pages() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted(ROOT.glob("docs/**/*.md"))


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(page.read_text("utf-8"))]


def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub's links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}
