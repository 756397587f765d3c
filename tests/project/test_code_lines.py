"""Lines of code are counted alike, whoever wrote them and however much is explained."""

import ast
from pathlib import Path

from tests.project.code_lines import code_of, counted, modules

SOURCE = '''"""A module.

With a docstring.
"""

import os  # for its name

# A comment alone.
TEXT = """
not a docstring

   indented
"""


class Place:
    """A class."""

    @property
    def name(self) -> str:
        """Return it."""
        # Why.
        return (
            os.name

        )

    def rest(self) -> None:
        """Nothing but words."""


def around() -> None:
    def inside() -> None:
        "Short."
        "no docstring"

    inside()
'''


def lines_of(source: str) -> list[str]:
    texts = source.split("\n")
    code = code_of(source, ast.parse(source))
    return [texts[line - 1].strip()[:size] for line, size in sorted(code.items())]


def test_blank_lines_comments_and_docstrings_are_no_code() -> None:
    assert lines_of(SOURCE) == [
        "import os",
        'TEXT = """',
        "not a docstring",
        "indented",
        '"""',
        "class Place:",
        "@property",
        "def name(self) -> str:",
        "return (",
        "os.name",
        ")",
        "def rest(self) -> None:",
        "def around() -> None:",
        "def inside() -> None:",
        '"no docstring"',
        "inside()",
    ]


def test_a_function_is_as_long_as_its_code_with_that_of_functions_inside() -> None:
    count = counted([SOURCE])
    assert sorted(count.lengths) == [1, 2, 4, 4]
    assert (count.lines, count.characters) == (16, sum(map(len, lines_of(SOURCE))))


def test_figures_are_those_of_all_modules_together() -> None:
    functions = ["def f():\n" + "    pass\n" * size for size in range(1, 11)]
    assert counted(["ab = 1\n", "", *functions]).figures() == {
        "code_lines": 1 + 10 + 55,
        "characters_per_line": round((6 + 10 * 8 + 55 * 4) / 66, 2),
        "functions": 10,
        "function_p90": 10,
    }


def test_linked_and_foreign_modules_do_not_count(tmp_path: Path) -> None:
    for folder in ("own/deep", "node_modules", "elsewhere"):
        (tmp_path / "app" / folder).mkdir(parents=True)
        (tmp_path / "app" / folder / "a.py").touch()
    (tmp_path / "app" / "elsewhere").rename(tmp_path / "elsewhere")
    (tmp_path / "app" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "app" / "page.html").touch()
    found = [path.relative_to(tmp_path).as_posix() for path in modules(tmp_path / "app")]
    assert found == ["app/own/deep/a.py"]
