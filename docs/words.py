"""Counts the words that users read and somebody wrote by hand.

`python -m docs.words` prints them for each page, with Flesch's reading ease (60 is plain English,
30 an academic's), pages that are too long, and cells of tables that are.

What is made from code does not count, nor does `docs/building/`, which only builders read. Blocks
of code count: readers have to read them.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# Who adds words cuts what they replace.
MOST = 60_000
MOST_ON_A_PAGE, MOST_IN_A_CELL = 3_000, 40

_MADE = re.compile(r"<!-- made by .*?-->.*?<!-- end -->", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CELL_ENDS = re.compile(r"(?<!\\)\|")
_SENTENCE_ENDS = re.compile(r"[.!?](?:\s|$)")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_VOWELS = re.compile(r"[aeiouy]+")
# Endings whose `e` is silent, except after `l`, as in `able`.
_SILENT = re.compile(r"(?<=[^l])e$|(?<=[^dt])ed$")


class Page(NamedTuple):
    """A page as its readers see it."""

    path: str
    text: str

    @property
    def words(self) -> int:
        return len(self.text.split())

    @property
    def ease(self) -> float:
        """Flesch's reading ease of the prose; 100 if there is none."""
        prose = self._prose()
        words = _WORD.findall(prose)
        if not words:
            return 100.0
        sentences = max(1, len(_SENTENCE_ENDS.findall(prose)))
        syllables = sum(map(_syllables_of, words))
        return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)

    def cells(self) -> Iterator[str]:
        """Yield the cells of tables."""
        for line in _CODE.sub("", self.text).splitlines():
            if line.startswith("|"):
                yield from _CELL_ENDS.split(_LINK.sub(r"\1", line))

    def _prose(self) -> str:
        """Sentences without code, headings and tables; an item of a list is one at least."""
        text = _LINK.sub(r"\1", re.sub(r"`[^`\n]*`", "x", _CODE.sub("", self.text)))
        blocks = re.split(r"\n\s*\n|\n(?=[*\d])", text)
        told = (" ".join(each.split()) for each in blocks if not re.match(r"\s*[|#<]", each))
        return "\n".join(f"{each}." if each[-1:] not in ".!?" else each for each in told if each)


def _syllables_of(word: str) -> int:
    return max(1, len(_VOWELS.findall(_SILENT.sub("", word.lower()))))


def pages() -> list[Page]:
    """Return the pages that users read, without what is made from code."""
    docs = (path for path in ROOT.glob("docs/**/*.md") if "building" not in path.parts)
    return [_read(path) for path in (ROOT / "README.md", *sorted(docs))]


def _read(path: Path) -> Page:
    text = _COMMENT.sub("", _MADE.sub("", path.read_text("utf-8")))
    return Page(path.relative_to(ROOT).as_posix(), text)


def total() -> int:
    return sum(page.words for page in pages())


def long_pages() -> dict[str, int]:
    """Return the pages above the limit, with their words."""
    return {page.path: page.words for page in pages() if page.words > MOST_ON_A_PAGE}


def long_cells() -> list[tuple[str, int, str]]:
    """Return the cells above the limit: the page, the words, and how the cell begins."""
    return [
        (page.path, len(cell.split()), cell.strip()[:60])
        for page in pages()
        for cell in page.cells()
        if len(cell.split()) > MOST_IN_A_CELL
    ]


def main() -> None:
    say = sys.stdout.write
    for page in sorted(pages(), key=lambda page: -page.words):
        mark = "  too long" if page.words > MOST_ON_A_PAGE else ""
        say(f"{page.words:6,} words, ease {page.ease:3.0f}  {page.path}{mark}\n")
    say(f"{total():6,} words on {len(pages())} pages, at most {MOST:,}\n")
    for path, words, begin in long_cells():
        say(f"{words:6} words in a cell  {path}: {begin} …\n")


if __name__ == "__main__":
    main()
