"""Builds of the wheel, with a compiled or an interpreted core."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.serving import PROGRAM, ROOT, environment

_BUILD = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]


def build(home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_BUILD, str(home)],
        cwd=ROOT,
        env={**environment(), **variables},
        capture_output=True,
        text=True,
    )


def test_the_installed_core_is_compiled() -> None:
    words = [*PROGRAM, "--version"]
    version = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    if "interpreted" in version.stdout:
        pytest.skip("the sources are tested, or there is no compiler")
    assert version.stdout.endswith("(compiled core)\n")


def test_a_build_without_a_compiler_makes_an_interpreted_core_and_says_why(
    tmp_path: Path,
) -> None:
    built = build(tmp_path, CC="no-such-compiler")
    assert built.returncode == 0
    assert "the core is not compiled" in built.stderr
    assert "install gcc" in built.stderr
    [wheel] = tmp_path.glob("holdfast_bayeux-*-py3-none-any.whl")
    names = ZipFile(wheel).namelist()
    assert "holdfast/bayeux/exchanges.py" in names
    assert [name for name in names if name.endswith(".data/data/share/man/man1/holdfast-serve.1")]
    assert not [name for name in names if name.endswith(".so")]


def test_a_build_that_requires_a_compiled_core_fails_without_a_compiler(tmp_path: Path) -> None:
    built = build(tmp_path, CC="no-such-compiler", COMPILE_CORE="always")
    assert built.returncode != 0
    assert "the core cannot be compiled" in built.stderr
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("wanted", "takes_tools"), [("never", False), ("", True)])
def test_a_build_requires_a_compiler_only_if_it_may_compile_and_always_what_man_pages_need(
    wanted: str, takes_tools: bool
) -> None:
    ask = "from hatchling.build import get_requires_for_build_wheel as ask; print(*ask())"
    variables = {**environment(), "COMPILE_CORE": wanted}
    words = [sys.executable, "-c", ask]
    said = subprocess.run(
        words, cwd=ROOT, env=variables, capture_output=True, text=True, check=True
    )
    packages = {*said.stdout.split()}
    assert ("mypy" in packages) is takes_tools
    assert packages >= {"orjson", "typer"}
