"""A release is made of a small repository, by the tool and a stand-in for what make builds."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.release import versions
from tests.container import ROOT

MAKEFILE = """\
describe:
\techo '{}' >store-$(VERSION).json
check: ; @test ! -e broken
test check-release: ;
dist:
\trm -r .venv/wheel && touch .venv/stamps/holdfast
\tmkdir -p dist
\ttouch dist/holdfast_bayeux-0.4.0.tar.gz dist/holdfast_bayeux-0.4.0-py3-none-any.whl
\ttouch dist/holdfast_bayeux_client-0.4.0.tar.gz dist/holdfast_bayeux_client-0.4.0-py3-none-any.whl
\ttouch dist/holdfast-bayeux-0.4.0.tgz
chart:
\ttouch dist/holdfast-0.4.0.tgz
sbom:
\ttouch dist/holdfast.cdx.json dist/pages.cdx.json
"""
INSTALL = """\
In the folder with the files of this release:

```sh
python3 -m venv .venv && .venv/bin/pip install --find-links . holdfast-bayeux
```
"""
FILES = {
    "Makefile": MAKEFILE,
    ".gitignore": "/dist/\n/.venv\n",
    ".venv/wheel/former.whl": "",
    ".venv/stamps/holdfast": "",
    "pyproject.toml": '[project]\nname = "holdfast-bayeux"\nversion = "0.3.0"\n'
    'dependencies = ["holdfast-bayeux-client==0.3.0", "other==0.3.0"]\n',
    "static/js/package.json": '{"version": "0.3.0", "peerDependencies": {"vue": "0.3.0"}}\n',
    "deploy/chart/Chart.yaml": "version: 0.3.0\nappVersion: 0.3.0\n",
    "docs/how-to/page.md": "holdfast-bayeux-0.3.0.tgz, not 10.3.0 or 0.3.0.1\n",
    "docs/how-to/upgrading.md": "from 0.3.0 on\n",
    "CHANGELOG.md": "# Changes\n\n## Unreleased\n\n### Added\n\n"
    "- [A page](docs/how-to/page.md).\n\n"
    "## 0.3.0 - 2026-11-24\n\n- Before.\n",
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {
        **{f"GIT_{who}_{what}": "ann@example.org" for who, what in WHO_WHAT},
        **{"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
    }.items():
        monkeypatch.setenv(name, value)
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    git(tmp_path, "remote", "add", "origin", "https://git.example/them/holdfast.git")
    commit(tmp_path)
    return tmp_path


WHO_WHAT = [(who, what) for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]


def git(repository: Path, *words: str) -> str:
    words = ("git", "-C", str(repository), *words)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def commit(repository: Path) -> None:
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "What there is")


def release(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deploy.release", *words],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def everything(repository: Path) -> list[str]:
    """The commit, the tags, the working trees and the changes of a repository."""
    asked = ("rev-parse HEAD", "tag", "worktree list", "status --porcelain", "branch")
    return [git(repository, *words.split()) for words in asked]


def test_a_dry_run_builds_everything_and_changes_nothing(repository: Path) -> None:
    before = everything(repository)
    done = release(repository, "0.4.0")
    assert done.returncode == 0, done.stderr
    assert "This was a dry run" in done.stdout
    assert everything(repository) == before
    built = {path.name for path in (repository / "dist/0.4.0").iterdir()}
    assert built == {
        *("holdfast_bayeux-0.4.0.tar.gz", "holdfast_bayeux-0.4.0-py3-none-any.whl"),
        "holdfast_bayeux_client-0.4.0.tar.gz",
        "holdfast_bayeux_client-0.4.0-py3-none-any.whl",
        *("holdfast-bayeux-0.4.0.tgz", "holdfast-0.4.0.tgz"),
        *("holdfast.cdx.json", "pages.cdx.json", "NOTES.md", "SHA256SUMS"),
    }
    words = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(words, cwd=repository / "dist/0.4.0").returncode == 0


def test_builds_install_nothing_into_the_environment_of_the_repository(repository: Path) -> None:
    stamp = repository / ".venv/stamps/holdfast"
    os.utime(stamp, (1, 1))
    assert release(repository, "0.4.0").returncode == 0
    assert stamp.stat().st_mtime == 1
    assert (repository / ".venv/wheel/former.whl").exists()


def test_a_release_is_one_commit_with_a_tag_and_is_undone_by_one_line(repository: Path) -> None:
    before = git(repository, "rev-parse", "HEAD")
    done = release(repository, "0.4.0", "--commit")
    assert done.returncode == 0, done.stderr
    subject, *tags = git(repository, "log", "-1", "--format=%s%n%D").splitlines()
    assert subject.startswith("Release 0.4.0: ")
    assert tags == ["HEAD -> main, tag: v0.4.0"]
    assert git(repository, "rev-parse", "HEAD~1") == before
    assert git(repository, "show", "HEAD:store-0.4.0.json") == "{}\n"
    assert git(repository, "status", "--porcelain") == ""
    # It says how, and git does it.
    [undo] = [line for line in done.stdout.splitlines() if "--delete" in line]
    subprocess.run(undo, shell=True, cwd=repository, check=True, capture_output=True)
    assert everything(repository)[:2] == [before, ""]


def test_the_version_is_written_wherever_it_was(repository: Path) -> None:
    release(repository, "0.4.0", "--commit")
    project = (repository / "pyproject.toml").read_text()
    assert '\nversion = "0.4.0"\n' in project
    assert '["holdfast-bayeux-client==0.4.0", "other==0.3.0"]' in project
    expected = '{"version": "0.4.0", "peerDependencies": {"vue": "0.3.0"}}\n'
    assert (repository / "static/js/package.json").read_text() == expected
    chart = (repository / "deploy/chart/Chart.yaml").read_text()
    assert chart == "version: 0.4.0\nappVersion: 0.4.0\n"
    page = (repository / "docs/how-to/page.md").read_text()
    assert page == "holdfast-bayeux-0.4.0.tgz, not 10.3.0 or 0.3.0.1\n"
    assert (repository / "docs/how-to/upgrading.md").read_text() == "from 0.3.0 on\n"


def test_the_changelog_is_cut_and_its_section_becomes_the_notes(repository: Path) -> None:
    release(repository, "0.4.0", "--commit")
    changes = (repository / "CHANGELOG.md").read_text()
    headings = re.findall(r"(?m)^## (.*)$", changes)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(r"0\.4\.0 - \d{4}-\d\d-\d\d", headings[1])
    assert headings[2] == "0.3.0 - 2026-11-24"
    assert (repository / "dist/0.4.0/NOTES.md").read_text() == (
        f"# Holdfast 0.4.0\n\n{INSTALL}\n## Added\n\n"
        "- [A page](https://git.example/them/holdfast/blob/main/docs/how-to/page.md).\n"
    )


def test_notes_of_a_repository_without_a_public_address_have_no_links(repository: Path) -> None:
    git(repository, "remote", "remove", "origin")
    assert release(repository, "0.4.0").returncode == 0
    notes = (repository / "dist/0.4.0/NOTES.md").read_text()
    assert notes == f"# Holdfast 0.4.0\n\n{INSTALL}\n## Added\n\n- A page.\n"


def on_a_branch(repository: Path) -> None:
    git(repository, "switch", "--quiet", "--create", "other")


def with_a_change(repository: Path) -> None:
    (repository / "new").touch()


def with_its_tag(repository: Path) -> None:
    git(repository, "tag", "v0.4.0")


def without_news(repository: Path) -> None:
    changes = "# Changes\n\n## Unreleased\n\n## 0.3.0 - 2026-11-24\n"
    (repository / "CHANGELOG.md").write_text(changes)
    commit(repository)


def with_failing_checks(repository: Path) -> None:
    (repository / "broken").touch()
    commit(repository)


def without_a_chart(repository: Path) -> None:
    text = MAKEFILE.replace("touch dist/holdfast-0.4.0.tgz", "true")
    (repository / "Makefile").write_text(text)
    commit(repository)


def with_a_former_wheel(repository: Path) -> None:
    wheel = "holdfast_bayeux-0.3.0-py3-none-any.whl"
    (repository / "Makefile").write_text(f"{MAKEFILE}\ttouch dist/{wheel}\n")
    commit(repository)


def as_it_is(repository: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("change", "version", "reason"),
    [
        (on_a_branch, "0.4.0", "this is other: releases are made on main"),
        (with_a_change, "0.4.0", "commit or stash these first"),
        (with_its_tag, "0.4.0", "git tag --delete v0.4.0"),
        (without_news, "0.4.0", "the section Unreleased of CHANGELOG.md is empty"),
        (with_failing_checks, "0.4.0", "make check failed, see above; nothing has changed"),
        (without_a_chart, "0.4.0", "make has built no chart, holdfast-0.4.0.tgz"),
        (with_a_former_wheel, "0.4.0", "which is not of 0.4.0"),
        (as_it_is, "0.3.0", "0.3.0 is not newer than 0.3.0"),
        (as_it_is, "0.4", "0.4 is not a version such as 1.2.3"),
        (as_it_is, "v0.4.0", "v0.4.0 is not a version"),
    ],
)
def test_there_is_no_release_without_what_it_needs(
    repository: Path, change: Callable[[Path], None], version: str, reason: str
) -> None:
    change(repository)
    before = everything(repository)
    done = release(repository, version, "--commit")
    assert done.returncode == 1
    assert reason in done.stderr
    assert everything(repository) == before
    assert not (repository / "dist").exists()


def test_every_file_that_names_the_version_of_this_release_gets_the_next_one() -> None:
    """Or it is about that release itself."""
    version = versions.current(ROOT)
    words = ["grep", "--files-with-matches", "--word-regexp", "--fixed-strings", version]
    named = {*git(ROOT, *words, "--", ".", ":!tests", ":!*lock*", ":!*go.sum").splitlines()}
    written = {
        str(path.relative_to(ROOT)) for place in versions.PLACES for path in ROOT.glob(place.files)
    }
    assert named - written == {"CHANGELOG.md"}
    assert {"pyproject.toml", "static/js/package.json", "deploy/chart/Chart.yaml"} <= named
