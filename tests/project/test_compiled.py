"""What mypyc does with code differs from what Python does, where these rules are broken."""

import ast
import builtins
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.untraced

ROOT = Path(__file__).parent.parent.parent

_Nested = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def hook() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: dict[str, list[str]] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"][
        "custom"
    ]
    return found


def sources() -> dict[str, str]:
    compiled = {path for each in hook()["compiled"] for path in ROOT.glob(each)}
    compiled -= {ROOT / each for each in hook()["interpreted"]}
    assert len(compiled) > 100
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(compiled)}


def test_what_the_list_of_compiled_modules_names_is_there() -> None:
    """A pattern without a module compiles nothing, and no build fails."""
    assert [each for each in hook()["compiled"] if not any(ROOT.glob(each))] == []
    assert [each for each in hook()["interpreted"] if not (ROOT / each).exists()] == []


def starred(source: str) -> list[int]:
    """The lines that ask for membership in a starred tuple."""
    return [
        each.lineno
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.Compare)
        if isinstance(each.ops[0], ast.In | ast.NotIn)
        if isinstance(each.comparators[0], ast.Tuple)
        if any(isinstance(element, ast.Starred) for element in each.comparators[0].elts)
    ]


def test_no_compiled_module_asks_for_membership_in_a_starred_tuple() -> None:
    """mypyc does not compile it, which would be seen only where the core is compiled."""
    found = {name: starred(source) for name, source in sources().items()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_starred_tuple_counts_only_in_a_question_for_membership() -> None:
    assert starred("a = (1, *b)\nc in (1, *b)\nc not in (*b,)\nc in {1, *b}") == [2, 3]


def cyclic(source: str) -> set[str]:
    """The nested functions that mypyc makes part of a cycle, with what both functions call.

    If a nested function and the one around it use the same function, or a nested one another,
    mypyc keeps the nested ones in an object to which they refer. All that they know is then freed
    by the garbage collector alone.
    """
    return {
        f"{_name(nested)}: {each}"
        for function in ast.walk(ast.parse(source))
        if isinstance(function, _Nested)
        for nested in _nested_in(function)
        for each in _functions_of_both(function, nested)
    }


def _name(function: _Nested) -> str:
    return "lambda" if isinstance(function, ast.Lambda) else function.name


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    for each in ast.iter_child_nodes(function):
        yield each
        if not isinstance(each, _Nested):
            yield from _own_nodes(each)


def _nested_in(function: _Nested) -> list[_Nested]:
    return [each for each in _own_nodes(function) if isinstance(each, _Nested)]


def _functions_of_both(function: _Nested, nested: _Nested) -> set[str]:
    own, inner = [*_own_nodes(function)], [*ast.walk(nested)]
    names = {each.id for each in own if isinstance(each, ast.Name)}
    variables = {
        each.id for each in own if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    variables |= {each.arg for each in own if isinstance(each, ast.arg)}
    called = {
        each.func.id
        for each in (*own, *inner)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
    }
    used = {each.id for each in inner if isinstance(each, ast.Name)}
    # Those of classes and built-in functions are not meant.
    shared = {each for each in used & names & called if each[:1].islower() or each[:1] == "_"}
    shared -= {*dir(builtins)}
    siblings = {_name(each) for each in _nested_in(function)}
    return (shared | used & siblings) - variables


def test_no_compiled_function_leaves_its_nested_ones_to_the_garbage_collector() -> None:
    found = {name: cyclic(source) for name, source in sources().items()}
    assert {name: each for name, each in found.items() if each} == {}


def test_a_nested_function_is_in_a_cycle_with_what_the_one_around_it_calls_too() -> None:
    outer = "def outer(a):\n    {}\n    def inner():\n        {}\n    return inner"
    assert cyclic(outer.format("read(a)", "read(a)")) == {"inner: read"}
    assert cyclic(outer.format("a()", "inner()")) == {"inner: inner"}
    assert cyclic(outer.format("read(a)", "write(a)")) == set()
    assert cyclic(outer.format("b = a()", "b(a, len(a))")) == set()
