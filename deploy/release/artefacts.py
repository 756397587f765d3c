"""What a release consists of: whether all of it is there, and its checksums."""

import hashlib
from fnmatch import fnmatch
from pathlib import Path

from deploy.release.refused import Refused

# The files by what they are. Each must be there.
KINDS = {
    "source distribution": "holdfast_bayeux-{}.tar.gz",
    "wheel": "holdfast_bayeux-{}-*.whl",
    "source distribution of the client": "holdfast_bayeux_client-{}.tar.gz",
    "wheel of the client": "holdfast_bayeux_client-{}-*.whl",
    "package for npm": "holdfast-bayeux-{}.tgz",
    "chart": "holdfast-{}.tgz",
    "parts of the server": "holdfast.cdx.json",
    "parts of its pages": "pages.cdx.json",
}
NOTES, CHECKSUMS = "NOTES.md", "SHA256SUMS"


def check(dist: Path, version: str) -> list[str]:
    """Return the names of what was built. Raises `Refused` if anything lacks, or is too much."""
    names = sorted(path.name for path in dist.iterdir()) if dist.exists() else []
    patterns = {kind: pattern.format(version) for kind, pattern in KINDS.items()}
    for kind, pattern in patterns.items():
        if not any(fnmatch(name, pattern) for name in names):
            raise Refused(f"make has built no {kind}, {pattern}, but only: {', '.join(names)}")
    for name in names:
        if version not in name and name not in patterns.values():
            raise Refused(f"make has built {name}, which is not of {version}")
    return names


def write_checksums(dist: Path) -> None:
    """Write the checksums as `sha256sum --check` reads them."""
    files = sorted(path for path in dist.iterdir() if path.name != CHECKSUMS)
    sums = [(hashlib.sha256(path.read_bytes()).hexdigest(), path.name) for path in files]
    (dist / CHECKSUMS).write_text("".join(f"{digest}  {name}\n" for digest, name in sums))
