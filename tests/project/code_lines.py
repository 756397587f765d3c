"""Counts lines of code: `python -m tests.project.code_lines`, with `--json` for programs.

A line of code has something on it that is no comment and no docstring. So each line of a long
string counts, and a line with a comment behind the code; blank lines do not. Characters are those
of the code: without indentation, and without the comment behind it. A function's length is the
lines of code from its `def` on, without decorators; a nested function belongs to the one around
it, and is one of its own.
"""

import argparse
import ast
import io
import json
import math
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("app", "pipeline", "tests")
# Code of others, which an installation puts there.
FOREIGN = {"node_modules", "__pycache__"}
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Count:
    """What there is in some modules."""

    lines: int = 0
    characters: int = 0
    # Those of each function.
    lengths: list[int] = field(default_factory=list)

    def add(self, source: str) -> None:
        """Count a module, too."""
        tree = ast.parse(source)
        code = code_of(source, tree)
        self.lines += len(code)
        self.characters += sum(code.values())
        for node in ast.walk(tree):
            if isinstance(node, _FUNCTIONS):
                self.lengths.append(sum(line in code for line in _lines(node)))

    def figures(self) -> dict[str, float]:
        return {
            "code_lines": self.lines,
            "characters_per_line": round(self.characters / self.lines, 2),
            "functions": len(self.lengths),
            "function_p90": self._p90(),
        }

    def _p90(self) -> int:
        """What nine of ten functions do not exceed."""
        return sorted(self.lengths)[math.ceil(len(self.lengths) * 0.9) - 1]


def code_of(source: str, tree: ast.Module) -> dict[int, int]:
    """The lines of code by their numbers, with how many characters of code each has."""
    texts = source.split("\n")
    documented = {line for text in _docstrings(tree) for line in _lines(text)}
    found: dict[int, int] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _SILENT:
            continue
        (first, _), (last, end) = token.start, token.end
        for line in range(first, last + 1):
            text = texts[line - 1]
            # A string that goes on fills its line.
            code = text[:end] if line == last else text
            if line not in documented:
                found[line] = len(code.strip())
    return {line: size for line, size in found.items() if size}


def _docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            yield first.value


def _lines(node: ast.expr | ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def modules(folder: Path) -> Iterator[Path]:
    """The modules in a folder, without those that are linked there from another one."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name in FOREIGN:
            continue
        if path.is_dir():
            yield from modules(path)
        elif path.suffix == ".py":
            yield path


def counted(sources: Iterable[str]) -> Count:
    count = Count()
    for source in sources:
        count.add(source)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.project.code_lines", description="Counts lines of code."
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    is_json = parser.parse_args().json
    found = {
        name: counted(path.read_text("utf-8") for path in modules(ROOT / name)).figures()
        for name in FOLDERS
    }
    if is_json:
        print(json.dumps(found))  # noqa: T201
        return
    for name, figures in found.items():
        print(name, *(f"{figure} {value:g}" for figure, value in figures.items()), sep="\n    ")  # noqa: T201


if __name__ == "__main__":
    main()
