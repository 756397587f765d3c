"""The history of these files in git."""

import shutil
import subprocess

from tests.serving import ROOT


def git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)


def has_history() -> bool:
    """Whether these files are a clone with its whole history, not a copy or a shallow clone."""
    if shutil.which("git") is None:
        return False
    return git("rev-parse", "--is-shallow-repository", "--show-prefix").stdout.split() == [b"false"]
