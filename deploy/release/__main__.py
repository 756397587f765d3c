"""Makes a release: `python -m deploy.release VERSION`, or `make release VERSION=…`.

Everything happens in a working tree of its own: the version, the changelog, the checks, the builds
and the commit. With `--commit`, main then gets that commit and its tag. It never pushes.
"""

import argparse
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree, rmtree

from deploy.release import artefacts, changelog, versions
from deploy.release.refused import Refused
from deploy.release.repository import MAIN, Repository
from hatch_metadata import address_of, with_links_to, without_links

CHANGES = "CHANGELOG.md"
# What make does, in this order. `check` is of the sources, and so is fast to fail.
DESCRIBE, CHECK, BUILD = ("describe",), ("check", "check-release"), ("dist", "chart", "sbom")
WHOLE = ("test",)

LEFT = """
Left to do by hand:
  git push REMOTE main {tag}
  python -m twine upload {dist}/holdfast_bayeux*
  npm publish {dist}/holdfast-bayeux-{version}.tgz
  helm push {dist}/holdfast-{version}.tgz oci://REGISTRY
  docker build --tag REGISTRY/holdfast:{version} . && docker push REGISTRY/holdfast:{version}
  the release at the host of the repository, with {dist}/NOTES.md and the files beside it
  when an index has it for the first time: PUBLISHED = True in app/distribution.py"""
UNDO = """
To undo it, as long as it is not pushed:
  git tag --delete {tag} && git reset --keep {before}"""
TRIED = """
This was a dry run: no commit, no tag; {dist} has what was built. To release it:
  make release VERSION={version} ARGS=--commit"""


def main(words: list[str] | None = None) -> int:
    """Return the exit code: 0, or 1 with a reason if there is no release."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    parser.add_argument("version", metavar="VERSION", help="such as 1.2.3")
    parser.add_argument("--commit", action="store_true", help="change main, and tag it")
    parser.add_argument("--whole", action="store_true", help="run all tests, which takes long")
    parser.add_argument("--root", type=Path, default=Path(), help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    try:
        _release(Repository(asked.root.resolve()), asked)
    except Refused as refused:
        sys.stderr.write(f"no release: {refused}\n")
        return 1
    return 0


def _release(repository: Repository, asked: argparse.Namespace) -> None:
    version, tag = asked.version, f"v{asked.version}"
    old = versions.current(repository.root)
    versions.check_order(old, version)
    repository.check(tag)
    before = repository.git("rev-parse", "--short", "HEAD")
    dist = repository.root / "dist" / version
    with repository.tried() as tree:
        commit = _commit(tree, old, version)
        print(tree.git("show", "--stat", "--format=%h %s", commit), flush=True)
        _make(tree, WHOLE if asked.whole else CHECK)
        _make(tree, BUILD)
        _collect(tree, version, dist)
        if asked.commit:
            repository.take(commit, tag, f"Holdfast {version}")
    print("\n".join(sorted(path.name for path in dist.iterdir())))
    told = {"tag": tag, "version": version, "before": before}
    after = LEFT + UNDO if asked.commit else TRIED
    print(after.format(**told, dist=dist.relative_to(repository.root)))


def _commit(tree: Repository, old: str, version: str) -> str:
    changes = tree.root / CHANGES
    day = datetime.now(UTC).date().isoformat()
    changes.write_text(changelog.cut(changes.read_text("utf-8"), version, day), "utf-8")
    versions.set_version(tree.root, old, version)
    _make(tree, DESCRIBE, f"VERSION={version}")
    # Tests find the commit of a release by the beginning of its subject.
    return tree.commit_all(f"Release {version}: the version, its changes and what its store holds")


def _make(tree: Repository, targets: tuple[str, ...], *variables: str) -> None:
    """Make each target. What it says is shown at once."""
    # Builds of one commit are the same at any time.
    epoch = tree.git("log", "-1", "--format=%ct")
    for target in targets:
        print(f"make {target}", flush=True)
        words = ["make", "--no-print-directory", target, *variables]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
        # Of a `make` that runs this; flags of one are none of the other's.
        for name in ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"):
            environment.pop(name, None)
        if subprocess.run(words, cwd=tree.root, env=environment).returncode:
            raise Refused(f"make {target} failed, see above; nothing has changed on {MAIN}")


def _collect(tree: Repository, version: str, dist: Path) -> None:
    """Check what was built, add notes and checksums, and move all of it to `dist`."""
    built = tree.root / "dist"
    artefacts.check(built, version)
    text = changelog.notes((tree.root / CHANGES).read_text("utf-8"), version)
    address = address_of(_origin(tree))
    page = with_links_to(address, text) if address else without_links(text)
    (built / artefacts.NOTES).write_text(page, "utf-8")
    artefacts.write_checksums(built)
    rmtree(dist, ignore_errors=True)
    copytree(built, dist)


def _origin(tree: Repository) -> str:
    return tree.git("config", "--default", "", "--get", "remote.origin.url")


if __name__ == "__main__":
    sys.exit(main())
