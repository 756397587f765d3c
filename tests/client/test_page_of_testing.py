"""The tests in docs/how-to/testing.md run as they stand there, with the files it names."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.testing import LocalServer, LocalStore
from tests.pages import ROOT, blocks
from tests.serving import environment

PAGE = ROOT / "docs" / "how-to" / "testing.md"
BLOCKS = blocks(PAGE)
CODE = [block.text for block in BLOCKS if block.language == "python"]
TESTS = [code for code in CODE if code.startswith("async def test_")]
LIMIT_S = 120
EXTENSION = """
installed = []


def install(server):
    installed.append(server)
"""
TEST_OF_SETTINGS = """
from myshop.server import installed


async def test_the_server_has_these_settings(holdfast):
    assert len(installed) == 1
"""
MOST_LINES = 10


def test_the_tests_of_the_page_pass_as_they_stand_there(tmp_path: Path) -> None:
    (plugins,) = [code for code in CODE if code.startswith("pytest_plugins")]
    (imports,) = [code for code in CODE if code.startswith("import")]
    (options,) = [block.text for block in BLOCKS if block.language == "ini"]
    (settings,) = [code for code in CODE if "def holdfast_settings" in code]
    (tmp_path / "conftest.py").write_text(plugins)
    (tmp_path / "pytest.ini").write_text(options)
    (tmp_path / "test_orders.py").write_text("\n\n".join([imports, *TESTS]))
    (tmp_path / "test_settings.py").write_text(f"import pytest\n{TEST_OF_SETTINGS}\n\n{settings}")
    (tmp_path / "myshop").mkdir()
    (tmp_path / "myshop" / "server.py").write_text(EXTENSION)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(TESTS) + 1} passed" in ran.stdout


def test_the_tests_of_the_page_are_short() -> None:
    assert len(TESTS) == 4
    assert max(len(code.splitlines()) for code in TESTS) <= MOST_LINES


@pytest.mark.parametrize(("kind", "prefix"), [(LocalServer, ""), (LocalStore, "store.")])
def test_the_page_lists_what_a_test_may_use(kind: type, prefix: str) -> None:
    table = PAGE.read_text().partition("## The server of a test")[2].partition("\n\n## ")[0]
    names = {name for name in vars(kind) if not name.startswith("_")}
    for name in names - {"take_letter", "answered", "skip"}:
        assert f"`{prefix}{name}" in table, name
