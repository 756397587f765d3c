"""`make run` serves first and compiles behind it, without a network: pip and Python are played."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hatch_build
from tests.container import ROOT

LOCKS = ("requirements.lock", "requirements-install.lock", "requirements-build.lock")
SOURCES = (*LOCKS, "client/pyproject.toml", "pyproject.toml", "hatch_build.py", "hatch_metadata.py")
# Notes what is started. Each waits for the other: they must run at the same time, or neither ends.
PLAYED = """#!/bin/sh
echo "$(basename "$0") $*" >>"{log}"
await() {{ n=0; until grep -q "$1" "{log}" || [ $n = 200 ]; do n=$((n + 1)); sleep 0.05; done; }}
case "$(basename "$0") $*" in
*'holdfast serve'*) echo served >>"{log}"; [ -n "$IS_ALONE" ] || await built ;;
hatchling*) await served; echo built >>"{log}"; mkdir -p .venv/wheel; touch .venv/wheel/one.whl ;;
*--editable*) cp .venv/bin/python .venv/bin/holdfast ;;
esac
"""

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A clone whose packages are installed, and nothing else."""
    (tmp_path / "client").mkdir()
    for name in ("Makefile", *SOURCES):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("app", "extensions", "pipeline", "static/npm", "static/cometd", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "static/npm/package-lock.json").touch()
    (tmp_path / "static/cometd/.installed").touch()
    for name in ("python", "hatchling"):
        program = tmp_path / ".venv/bin" / name
        program.write_text(PLAYED.format(log=tmp_path / "log"))
        program.chmod(0o755)
    stamps = tmp_path / ".venv/stamps"
    stamps.mkdir()
    earlier = time.time() - 100
    for path in tmp_path.rglob("*"):
        os.utime(path, (earlier, earlier))
    for name in ("pip", "packages", "run"):
        (stamps / name).touch()
    return tmp_path


def run(home: Path, **environment: str) -> list[str]:
    """Run `make run` until the server and what is behind it have ended; return what was started."""
    make_run(home, **environment)
    return (home / "log").read_text().splitlines()


def make_run(home: Path, **environment: str) -> list[str]:
    """Do the same, but return what it printed."""
    (home / "log").write_text("")
    # A `make` that runs the tests would share its jobs.
    inherited = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    done = subprocess.run(
        ["make", "run", "ARGS=--port 9"],
        cwd=home,
        env={**inherited, "COMPILE_HOME": str(home / "compiled"), **environment},
        check=True,
        timeout=60,
        # The pipe ends with the last process.
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout.splitlines()


def test_a_fresh_clone_is_served_before_it_is_compiled(home: Path) -> None:
    started = run(home)
    assert "python -m holdfast serve --port 9" in started
    assert started.index("served") < started.index("built")
    # The command is there before: people publish as soon as the server runs.
    editable = next(n for n, line in enumerate(started) if "--editable ." in line)
    assert editable < started.index("served")


def test_a_first_start_says_what_it_does_instead_of_how(home: Path) -> None:
    for name in ("pip", "packages", "run"):
        (home / ".venv/stamps" / name).unlink()
    printed = [line.partition(";")[0] for line in make_run(home) if "npm" not in line]
    assert sorted(printed) == [
        "building holdfast",
        "holdfast is installed: the next start uses it",
        "installing pip",
        "installing the packages of the server",
        "installing what builds the server",
        "serving the sources, interpreted",
    ]


def test_the_next_start_serves_what_was_compiled(home: Path) -> None:
    run(home)
    assert make_run(home, IS_ALONE="1") == []
    started = run(home, IS_ALONE="1")
    assert [line for line in started if "-c" not in line] == ["holdfast serve --port 9", "served"]


def test_changed_sources_are_served_as_they_are_and_compiled_behind(home: Path) -> None:
    run(home)
    later = time.time() + 100
    (home / "app" / "changed.py").touch()
    os.utime(home / "app" / "changed.py", (later, later))
    started = run(home)
    assert "python -m holdfast serve --port 9" in started
    assert "built" in started
    assert not any("--editable" in line for line in started)


def test_a_build_says_that_compiling_takes_time_when_it_compiles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command: Any = SimpleNamespace(compiler=SimpleNamespace(compile=lambda sources: [*sources]))
    hatch_build._compile_side_by_side(command)
    assert capsys.readouterr().err == ""
    assert command.compiler.compile(["a.c", "b.c"]) == ["a.c", "b.c"]
    assert capsys.readouterr().err.splitlines() == [
        "the core: compiling it, which takes one to three minutes",
        "the core: compiled 1 of 2 files",
        "the core: compiled 2 of 2 files",
    ]
    # The modules that only refer to that code have one small file each.
    command.compiler.compile(["shim.c"])
    assert capsys.readouterr().err == ""


def test_setup_waits_for_the_compiled_server(home: Path) -> None:
    (home / "log").write_text("served\n")
    command = ["make", "setup", f"COMPILE_HOME={home / 'compiled'}"]
    subprocess.run(command, cwd=home, check=True, timeout=60, capture_output=True)
    # The server, and the client.
    assert (home / "log").read_text().count("built") == 2
    assert (home / ".venv/stamps/holdfast").exists()
