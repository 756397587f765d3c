"""Parts of the core get what they use from their constructors: what comes later is listed here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "app"
CORE = ("bayeux", "delivery", "cluster", "sharding")
MOST = 5

# Each circle, with the reason why none of both sides can be created last.
LATER = {
    "bayeux/assembly.py: SettlingParts.bind": "filling a queue settles entries, and the reverse",
    "bayeux/far_parts.py: state.requests.elsewhere": "requests cross shards, and replies return",
    "bayeux/far_parts.py: state.topics.elsewhere": "a home asks other shards before a topic ends",
    "bayeux/far_parts.py: state.work.far": "queues lend work, and loans return to them",
    "bayeux/far_parts.py: state.presence_events.tell": "members here are told, others are shown",
}
# What these keep is no part.
DATA = {"bayeux/wire/receipts.py: Receipt.then"}


def functions(tree: ast.AST) -> Iterator[tuple[str, ast.FunctionDef]]:
    for each in ast.walk(tree):
        if isinstance(each, ast.ClassDef):
            for function in each.body:
                if isinstance(function, ast.FunctionDef):
                    yield each.name, function


def parts_of(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def is_of_self(target: ast.expr) -> bool:
    return (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    )


def is_text(each: ast.stmt) -> bool:
    return isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)


def only_keeps(function: ast.FunctionDef) -> bool:
    """Return whether a method does nothing but keep what it is given."""
    given = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    body = [each for each in function.body if not is_text(each)]
    if function.name == "__init__" or function.decorator_list or not body:
        return False
    return all(
        isinstance(each, ast.Assign)
        and all(map(is_of_self, parts_of(each.targets[0])))
        and all(isinstance(kept, ast.Name) and kept.id in given for kept in parts_of(each.value))
        for each in body
    )


def given_later(source: str) -> Iterator[str]:
    """Yield the methods that keep a part, and what constructors set in other objects."""
    for owner, function in functions(ast.parse(source)):
        if only_keeps(function):
            yield f"{owner}.{function.name}"
        if function.name != "__init__":
            continue
        for each in ast.walk(function):
            for target in each.targets if isinstance(each, ast.Assign) else ():
                for part in parts_of(target):
                    if isinstance(part, ast.Attribute) and not ast.unparse(part).startswith(
                        "self."
                    ):
                        yield ast.unparse(part)


def found() -> set[str]:
    modules = [path for room in CORE for path in sorted((APP / room).rglob("*.py"))]
    assert len(modules) > 200
    return {
        f"{path.relative_to(APP)}: {each}"
        for path in modules
        for each in given_later(path.read_text("utf-8"))
    }


def test_hardly_any_part_of_the_core_gets_another_one_later() -> None:
    assert found() - DATA == {*LATER}
    assert len(LATER) <= MOST


@pytest.mark.parametrize(
    ("source", "later"),
    [
        ("def go_among(self, others):\n        self.others = others", ["A.go_among"]),
        ("def bind(self, a, b):\n        self._a, self._b = a, b", ["A.bind"]),
        ("def __init__(self, state):\n        state.far = self", ["state.far"]),
        ("def __init__(self, state):\n        self.state = state", []),
        ("def begin(self, others):\n        self.others = others\n        self.go_on()", []),
    ],
)
def test_what_is_given_later_is_found(source: str, later: list[str]) -> None:
    assert [*given_later(f"class A:\n    {source}")] == later
