"""What `make dist` has built, and packages beside it: nothing else can be installed here."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from select import select

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import launched, profile
from tests.clients.node_client import require
from tests.serving import ROOT, START_LIMIT_S, STOP_LIMIT_S

__all__ = ["profile"]

BUILT = ROOT / ".venv" / "artefacts"
PACKAGES = ROOT / ".venv" / "packages"
LIMIT_S = 110


def require_built(pattern: str) -> Path:
    """The one file of that kind."""
    found = [*BUILT.glob(pattern)]
    require(found, f"{pattern} in .venv/artefacts (make setup-artefacts)")
    [path] = found
    return path


class Machine:
    """A machine with Python alone: no Node, no compiler, no clone, and no network."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "bin").mkdir()
        # The script of a tool may ask where it is.
        for name in ("dirname", "realpath"):
            (home / "bin" / name).symlink_to(str(shutil.which(name)))
        self.variables: Mapping[str, str] = {
            "HOME": str(home),
            "PATH": str(home / "bin"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_COMPILE": "1",
            "PIP_NO_INDEX": "1",
            "PIPX_BIN_DIR": str(home / "bin"),
            "PIPX_HOME": str(home / "pipx"),
            "UV_NO_INDEX": "1",
            "UV_OFFLINE": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_TOOL_BIN_DIR": str(home / "bin"),
        }

    def offer(self, *patterns: str) -> None:
        """Let installers find these artefacts, and the packages of others."""
        shelf = self.home / "shelf"
        shelf.mkdir()
        for path in (*map(require_built, patterns), *PACKAGES.iterdir()):
            (shelf / path.name).symlink_to(path)
        found = {"PIP_FIND_LINKS": str(shelf), "UV_FIND_LINKS": str(shelf)}
        self.variables = {**self.variables, **found}

    def run(self, *words: str | Path, fails: bool = False) -> str:
        """Run a command to its end; return what it said."""
        done = subprocess.run(
            [*map(str, words)],
            cwd=self.home,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
        assert bool(done.returncode) is fails, done.stdout
        return done.stdout

    @contextmanager
    def serving(self, *words: str | Path) -> Iterator[str]:
        """Serve by this command, at the address that is given."""
        with (self.home / "log").open("w+b") as log:
            process = subprocess.Popen(
                [*map(str, words), "serve", "--port", "0"],
                cwd=self.home,
                env=self.variables,
                stdout=subprocess.PIPE,
                stderr=log,
            )
            assert process.stdout is not None
            try:
                readable, _, _ = select([process.stdout], [], [], START_LIMIT_S)
                line = process.stdout.readline().decode() if readable else ""
                assert line.startswith("holdfast is ready: "), (self.home / "log").read_text()
                yield line.split()[3].removesuffix("/cometd")
            finally:
                process.send_signal(signal.SIGTERM)
                code = process.wait(STOP_LIMIT_S)
                process.stdout.close()
            assert code == 0


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(scope="module")
def npm() -> str:
    found = shutil.which("npm")
    require(found, "npm")
    assert found is not None
    return found


def node_variables() -> dict[str, str]:
    """Our environment, with what npm needs to work without a network."""
    return {**os.environ, "npm_config_offline": "true", "npm_config_update_notifier": "false"}
