"""Counts turns of phrase in docstrings and comments that sound translated.

`python -m docs.wording` prints how many stand in a thousand lines of each folder. `--list` prints
each with its place. The table says what an engineer would write instead.
"""

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


def _has_modules(path: Path) -> bool:
    """Return whether it is a folder of modules, not a link to one."""
    return path.is_dir() and not path.is_symlink() and any(path.rglob("*.py"))


FOLDERS = (
    *(f"app/{path.name}" for path in sorted((ROOT / "app").iterdir()) if _has_modules(path)),
    "extensions",
    "pipeline",
)

# Each phrase, and what to write instead.
PHRASES = {
    "nobody": "name who is missing: no client, no receiver, no one reads it",
    "whoever": "the client that, any caller",
    "those of, that of": "repeat the noun",
    "of its own, of their own": "a separate one, its",
    "anew": "again, from the start",
    "but for, all but": "except",
    "for ever": "forever",
    "in vain": "without success",
    "those who, all who": "clients that, callers that",
}

_ANY = re.compile(
    r"\b(" + "|".join(phrase for row in PHRASES for phrase in row.split(", ")) + r")\b",
    re.IGNORECASE,
)


class Found(NamedTuple):
    """A phrase and its place."""

    path: str
    line: int
    phrase: str


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings and blocks of comments, each with its first line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield node.body[0].lineno, text
    before, block = -1, [""]
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if line != before + 1:
            yield before - len(block) + 1, " ".join(block)
            block = []
        block.append(token.string.lstrip("# "))
        before = line
    yield before - len(block) + 1, " ".join(block)


def phrases_in(source: str) -> Iterator[tuple[int, str]]:
    """Yield the phrases in a module's docstrings and comments, with the line of each text."""
    # Most modules have none at all, and need not be parsed.
    whole = _in_one_line(source.replace("#", " "))
    if not (_ANY.search(whole) or _ANY.search(_less_code(whole))):
        return
    for line, text in texts_of(source):
        for found in _ANY.finditer(_less_code(_in_one_line(text))):
            yield line, found.group().lower()


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _less_code(text: str) -> str:
    """Leave out what stands in backticks, which is no phrase."""
    return re.sub("`[^`]*`", "", text)


@cache
def found_in(folder: str) -> tuple[Found, ...]:
    """Return all phrases in the modules of a folder."""
    return tuple(
        Found(path.relative_to(ROOT).as_posix(), line, phrase)
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, phrase in phrases_in(path.read_text("utf-8"))
    )


def lines_of(folder: str) -> int:
    """Return how many lines the modules of a folder have."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py"))


def rate_of(*folders: str) -> float:
    """Return how many phrases stand in a thousand lines of these folders."""
    return 1000 * sum(len(found_in(each)) for each in folders) / sum(map(lines_of, folders))


if __name__ == "__main__":
    for folder in FOLDERS:
        print(f"{rate_of(folder):5.2f}  {folder}")  # noqa: T201
        if "--list" in sys.argv:
            for found in found_in(folder):
                print(f"         {found.path}:{found.line} {found.phrase}")  # noqa: T201
    print(f"{rate_of(*FOLDERS):5.2f}  all")  # noqa: T201
