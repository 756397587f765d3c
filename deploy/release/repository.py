"""The repository of a release, which stays as it is until everything has succeeded."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory

from deploy.release.refused import Refused

MAIN = "main"


class Repository:
    """A folder that git keeps: the repository itself, or a working tree that shares its commits."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *words: str) -> str:
        """Return what git says. Raises `Refused` with its error if it fails."""
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True)
        if done.returncode:
            raise Refused(f"git {words[0]} failed: {done.stderr.strip()}")
        return done.stdout.strip()

    def check(self, tag: str) -> None:
        """Raise `Refused` unless this is main without changes, and the tag is free."""
        branch = self.git("branch", "--show-current") or "no branch"
        if branch != MAIN:
            raise Refused(f"this is {branch}: releases are made on main, so run git switch main")
        if changed := self.git("status", "--porcelain"):
            raise Refused(
                f"commit or stash these first, so that they are not forgotten:\n{changed}"
            )
        if self.git("tag", "--list", tag):
            raise Refused(f"the tag {tag} is there already: delete it with git tag --delete {tag}")

    @contextmanager
    def tried(self) -> Iterator["Repository"]:
        """Make a working tree of the present commit, on no branch. It is removed at the end."""
        with TemporaryDirectory(prefix="holdfast-release-") as home:
            # Builds tell remotes and histories by git, so it is no copy.
            self.git("worktree", "add", "--quiet", "--detach", f"{home}/holdfast")
            try:
                tree = Repository(Path(home, "holdfast"))
                if (self.root / ".venv").exists():
                    _copy_tools((self.root / ".venv").resolve(), tree.root / ".venv")
                yield tree
            finally:
                self.git("worktree", "remove", "--force", f"{home}/holdfast")

    def commit_all(self, subject: str) -> str:
        """Commit all changes, new files too; return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def take(self, commit: str, tag: str, message: str) -> None:
        """Let main be at this commit, and tag it: both or, if main cannot, none."""
        self.git("merge", "--quiet", "--ff-only", commit)
        self.git("tag", "--annotate", tag, "--message", message, commit)


def _copy_tools(here: Path, there: Path) -> None:
    """Give builds an environment of their own, into which they install the new version."""
    if subprocess.run(["cp", "--archive", "--link", here, there], capture_output=True).returncode:
        # Another file system.
        rmtree(there, ignore_errors=True)
        subprocess.run(["cp", "--archive", here, there], check=True)
    # Builds touch these.
    if (here / "stamps").exists():
        rmtree(there / "stamps")
        copytree(here / "stamps", there / "stamps")
