"""Where modules are and what they are called: a reader finds a line by its room."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import ROOT

pytestmark = pytest.mark.untraced

APP = ROOT / "app"
MOST_LINES = 450
# With as many parameters, all after the second must be named.
MOST_POSITIONAL = 5
# Longer modules, and why.
LONG: dict[str, str] = {}
# Modules that repeat the name of their room, and why.
REPEATING = {
    "bayeux/state/server_state.py": "`server` is the module that is assembled from it",
    "client/client.py": "the class `Client`",
    "client/sync_client.py": "the class `SyncClient`",
    "delivery/ports/journal_port.py": "`journal` is what is behind the port",
    "delivery/ports/store_port.py": "`store` is what is behind the port",
    "journal/journal.py": "the class `Journal`",
    "store/store.py": "the class `Store`",
}
# A message crosses these packages, and an operator's request the administration as well.
ON_ONE_WAY = ("bayeux", "delivery", "journal", "store", "web")
# Names of two modules, and why.
TWICE = {
    "application": "one on each of the two ports, both made by `compose`",
    "shared_queues": "the REST resource of shared queues is named as they are",
}


def modules() -> Iterator[str]:
    """The paths of all modules below `app`, without the links to other folders."""
    yield from (path.name for path in sorted(APP.glob("*.py")) if path.name != "__init__.py")
    for folder in APP.iterdir():
        if folder.is_dir() and not folder.is_symlink():
            for path in sorted(folder.rglob("*.py")):
                if path.name != "__init__.py":
                    yield path.relative_to(APP).as_posix()


def repeats_room(module: str) -> bool:
    """Whether a module's name has its room's, unless it is what the room has many of."""
    path = Path(module)
    room, words = path.parent.name, path.stem.split("_")
    if not room or f"{path.stem}s" == room:
        return False
    return room.removesuffix("s") in [word.removesuffix("s") for word in words]


def rooms() -> set[str]:
    """The folders inside the packages that consist of rooms, without those of pages and tools."""
    packages = ("bayeux", "delivery", "store", "web")
    return {str(Path(each).parent) for each in modules() if each.startswith(packages)}


def test_no_module_has_more_lines_than_a_reader_keeps_in_mind() -> None:
    lines = {each: len((APP / each).read_text("utf-8").splitlines()) for each in modules()}
    assert len(lines) > 300
    assert {each: count for each, count in lines.items() if count > MOST_LINES}.keys() <= {*LONG}


def positional(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The parameters that a call may give without a name."""
    given = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return given[1:] if given[:1] in (["self"], ["cls"]) else given


def test_calls_in_the_core_name_their_arguments_where_there_are_many() -> None:
    found = [
        f"{path.relative_to(APP)}: {each.name}"
        for package in ("bayeux", "delivery")
        for path in (APP / package).rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        if len(positional(each)) >= MOST_POSITIONAL
    ]
    assert found == []


def test_no_module_repeats_the_name_of_its_room() -> None:
    assert {each for each in modules() if repeats_room(each)} == {*REPEATING}


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("delivery/letters/dead_letters.py", True),
        ("delivery/guard/guard.py", True),
        ("store/store_clock.py", True),
        ("bayeux/sessions/session_life.py", True),
        ("delivery/messages/message.py", False),
        ("delivery/letters/dead.py", False),
    ],
)
def test_a_name_repeats_its_room_in_any_number(module: str, expected: bool) -> None:
    assert repeats_room(module) is expected


def test_no_two_modules_on_one_way_have_one_name() -> None:
    found = defaultdict(list)
    for each in modules():
        if each.startswith(tuple(f"{package}/" for package in ON_ONE_WAY)):
            found[Path(each).stem].append(each)
    assert {name for name, places in found.items() if len(places) > 1} == {*TWICE}


def test_the_table_of_rooms_has_each_of_them_once() -> None:
    page = (ROOT / "docs" / "building" / "architecture.md").read_text("utf-8")
    table = page.partition("\n## The rooms\n")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `app/([\w/]+)` \| \S", table, re.MULTILINE)
    assert sorted(named) == sorted(rooms())


# By feature: its own modules, and the only other ones that import these.
FEATURES = {
    "delayed messages": (
        "bayeux/publish/delaying.py",
        "delivery/shared_queues/delayed_publish.py",
        "delivery/shared_queues/delays.py",
        "web/admin/delayed.py",
    ),
}
REGISTERING = {"bayeux/assembly.py"}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_is_known_only_where_it_is_registered(feature: str) -> None:
    own = FEATURES[feature]
    names = {"holdfast." + each.removesuffix(".py").replace("/", ".") for each in own}
    words = [Path(each).stem for each in own]
    knowing = {
        each
        for each in modules()
        if each not in own
        if any(word in (APP / each).read_text("utf-8") for word in words)
        if names & imports_of(each)
    }
    assert knowing == REGISTERING


def imports_of(module: str) -> set[str]:
    """The modules from which a module imports something, wherever it does so."""
    tree = ast.parse((APP / module).read_text("utf-8"))
    return {
        each.module
        for each in ast.walk(tree)
        if isinstance(each, ast.ImportFrom) and each.module is not None
    }
