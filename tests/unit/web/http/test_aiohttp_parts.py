"""Every private part of aiohttp that the server uses is in the table that is checked at start."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import streams, web_protocol, web_request, web_response, web_server, web_ws
from aiohttp.web_protocol import RequestHandler

from holdfast.web.front.fast_lane import FastLane
from holdfast.web.http import aiohttp_parts
from holdfast.web.http.aiohttp_parts import PARTS, is_supported

# It reads sources.
pytestmark = pytest.mark.untraced

WEB = Path(__file__).parents[4] / "app" / "web"
THEIRS = (streams, web_protocol, web_request, web_response, web_server, web_ws)


def private_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of private attributes that are used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def made_here(tree: ast.AST) -> Iterator[str]:
    """Yield what a module's own classes define: functions, slots, and what only they assign."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from private_names(target)


def uses_aiohttp(source: str) -> bool:
    return "from aiohttp" in source or "protocol" in source or "lane" in source


SOURCES = {each: each.read_text() for each in sorted(WEB.rglob("*.py"))}
TABLE = {name for names in PARTS.values() for name in names}


def test_the_installed_version_has_all_parts() -> None:
    assert is_supported()


@pytest.mark.interpreted
@pytest.mark.parametrize("owner", PARTS)
def test_a_version_without_one_of_them_is_not_supported(
    owner: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARTS, owner, ("_nothing_of_this_name",))
    assert not is_supported()


def test_no_other_version_is_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiohttp, "__version__", "4.0.0")
    assert not aiohttp_parts.is_supported()


def test_a_version_without_its_errors_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiohttp_parts, "ErrInfo", None)
    assert not is_supported()


def test_every_part_of_the_connection_handler_that_connections_use_is_in_the_table() -> None:
    ours = FastLane.__mro__[: FastLane.__mro__.index(RequestHandler)]
    used = {name for each in ours for name in vars(each)}
    for each in ours:
        used |= {*re.findall(r"(?:\bself|super\(\))\.(_\w+)", inspect.getsource(each))}
    assert {"_keepalive_handle", "_reading_paused", "_waiter"} <= used
    theirs = {name for name in used if is_private(name) and hasattr(RequestHandler, name)}
    assert sorted(theirs - {*PARTS[RequestHandler]}) == []


def test_no_other_private_part_is_used() -> None:
    theirs = {name for each in THEIRS for name in private_names(ast.parse(inspect.getsource(each)))}
    trees = {each: ast.parse(source) for each, source in SOURCES.items()}
    ours = {name for each in trees.values() for name in made_here(each)} - TABLE
    used = {
        name
        for each, source in SOURCES.items()
        if uses_aiohttp(source)
        for name in private_names(trees[each])
    }
    assert sorted(used & theirs - ours - TABLE) == []


def test_every_part_of_the_table_is_used() -> None:
    used = {name for source in SOURCES.values() for name in private_names(ast.parse(source))}
    assert sorted(name for name in TABLE if is_private(name) and name not in used) == []
