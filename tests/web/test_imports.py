"""A plain server imports what it uses: the rest would take memory and time at each start."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.imported import modules_in
from tests.serving import ROOT, environment

# What a server without login, TLS or a terminal needs, with some room; Python's own modules count.
MOST_MODULES = 904
# Of the administration; each takes a few milliseconds.
MOST_IN_A_STEP = 4
START_LIMIT_S = 60.0


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The modules of a server that is ready."""
    home = tmp_path_factory.mktemp("plain")
    words = ["-X", "importtime", "-m", "holdfast", "serve", "--port", "0", "--data", str(home)]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert server.stdout is not None
            assert "is ready" in server.stdout.readline()
            found = modules_in(Path(log.name).read_text())
        finally:
            server.terminate()
            server.communicate(timeout=START_LIMIT_S)
    return found


def is_empty(name: str) -> bool:
    """Whether it is a folder of modules without code of its own, which costs nothing."""
    start = ROOT.joinpath(*name.split("."), "__init__.py")
    return start.is_file() and not start.read_bytes()


def test_a_plain_server_imports_a_limited_number_of_modules(modules: set[str]) -> None:
    assert len([name for name in modules if not is_empty(name)]) < MOST_MODULES


@pytest.mark.parametrize(
    "package",
    ["rich", "jwt", "argon2", "redis", "pydantic_settings", "prometheus_client", "tomllib"],
)
def test_a_plain_server_does_not_import_what_only_others_use(
    modules: set[str], package: str
) -> None:
    assert not [name for name in modules if name.partition(".")[0] == package]


@pytest.mark.parametrize("module", ["handlers", "now", "route", "session_views", "views"])
def test_a_plain_server_does_not_import_what_answers_operators(
    modules: set[str], module: str
) -> None:
    assert "holdfast.web.admin.tokens" in modules
    assert f"holdfast.web.admin.{module}" not in modules


_STEPS = """
import sys
from importlib import import_module
from holdfast.cli import serve
from holdfast.compose.operations import STEPS
for each in [*STEPS, "handlers"]:
    before = {*sys.modules}
    import_module("holdfast.web.admin." + each)
    print(each, *sys.modules.keys() - before)
"""


def test_what_answers_operators_is_imported_in_steps_that_keep_no_client_waiting() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _STEPS],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    *steps, rest = [line.split()[1:] for line in said.stdout.splitlines()]
    assert 0 < max(map(len, steps)) <= MOST_IN_A_STEP, steps
    assert not rest


_WATCH = """
import gc
def watch(server):
    found = sum(each["collections"] for each in gc.get_stats())
    print(found, gc.get_freeze_count(), flush=True)
"""


def test_a_server_does_not_look_for_garbage_among_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "watching.py").write_text(_WATCH)
    words = ["serve", "--port", "0", "--data", "data", "--extension", "watching:watch"]
    server = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        collections, exempt = map(int, server.stdout.readline().split())
    finally:
        server.terminate()
        server.communicate(timeout=START_LIMIT_S)
    # Python looks a few times before it runs any module.
    assert collections < 20
    assert exempt > 50_000
