"""Servers of former releases: their own code, from the history that git has."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from tests.history import git, has_history
from tests.serving import START_LIMIT_S, STOP_LIMIT_S, Settings, environment
from tests.store.stored_scene import RELEASES

# The releases, with the layouts of their stores.
LAYOUTS: dict[str, int] = {
    path.stem: json.loads(path.read_bytes())["open"]["args"][0]
    for path in sorted(RELEASES.glob("*.json"))
}
_FORMER_NAMES = {"0.3.0": "holdfast"}
_HERE = Path(__file__).parent / "former"
_PARTS = ("app", "extensions", "pipeline", "static", "holdfast")


class FormerServer:
    """A running server; `url` has no path."""

    def __init__(self, code: Path, settings: Settings) -> None:
        """Start it. Raises `RuntimeError` with its last words if it does not start."""
        self.data = Path(tempfile.mkdtemp(prefix="holdfast-test-"))
        given = json.dumps({"port": 0, "data": str(self.data), **settings})
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(code / "serve.py"), given],
            cwd=code,
            env=environment(str(code)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            raise RuntimeError(self.stop())

    def stop(self) -> str:
        """End it in order; return what it wrote to standard error."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=max(START_LIMIT_S, STOP_LIMIT_S))
        shutil.rmtree(self.data)
        return errors.decode()


@contextmanager
def code_of(release: str) -> Iterator[Path]:
    """The folder with the code of the release, and the program that serves it."""
    with code_at(_commit_of(release), release) as code:
        yield code


@contextmanager
def code_at(commit: str, release: str) -> Iterator[Path]:
    """The same for the release of any commit."""
    packed = git("archive", commit, *_PARTS)
    assert packed.returncode == 0, packed.stderr.decode()
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as name:
        code = Path(name)
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
            archive.extractall(code, filter="data")
        shutil.copytree(_HERE, code, dirs_exist_ok=True)
        _name(code, release)
        yield code


def releases_with(path: str) -> list[str]:
    """The releases whose code has this path, the newest first; none without a history."""
    if not has_history():
        return []
    words = ("--grep", r"^Release [0-9.]*: ", "--format=%H %s")
    found = [line.split()[:3] for line in git("log", *words).stdout.decode().splitlines()]
    return [
        release.removesuffix(":")
        for commit, _, release in found
        if git("cat-file", "-e", f"{commit}:{path}").returncode == 0
    ]


def _commit_of(release: str) -> str:
    """Find its commit by its subject: a clone without tags has that, too."""
    words = ("--grep", f"^Release {re.escape(release)}: ", "--format=%H")
    [commit] = git("log", *words).stdout.decode().split()
    return commit


def _name(code: Path, release: str) -> None:
    """Let the code find its version: it asks for a distribution of the name that it had."""
    former = _FORMER_NAMES.get(release)
    # No server runs beside the client of another version.
    for name in (former,) if former else ("holdfast-bayeux", "holdfast-bayeux-client"):
        (metadata := code / f"{name.replace('-', '_')}-{release}.dist-info").mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n"
        (metadata / "METADATA").write_text(text)
