"""Links in the metadata of distributions, which lead to where the project is when it is built.

Where that has no public address, there are none.

A wheel that is built from a source distribution has the links of that distribution.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# A remote of git. The last part of a host's name has a letter: nobody else reaches an address like
# 10.0.0.1, or a name without dots.
_REMOTE = re.compile(
    r"(?P<scheme>https?|ssh|git)://([^/]*@)?(?P<host>([\w-]+\.)+[a-z][\w-]*)(?P<port>:\d+)?"
    r"/(?P<path>[\w./~-]+?)(\.git)?/?",
    re.ASCII,
)
# `git@host:owner/name`, which is ssh as well.
_SHORT = re.compile(r"^([\w.-]+@)?([\w.-]+):(?!/)")
# Where links on a Markdown page begin. GitHub shows the page itself at the project's address.
_TO_HEADING = re.compile(r"(?<=\]\()(?=#)")
_TO_FILE = re.compile(r"(?<=\]\()(?![#/]|\w+:)")
_TO_PICTURE = re.compile(r'(?<=\bsrc=")(?=docs/)|(?<=\bsrcset=")(?=docs/)')
_LINK_TO_FILE = re.compile(r"\[([^\[\]]*)\]\((?!\w+:)[^)]*\)")
_PICTURE_OF_FILE = re.compile(
    r'<picture>.*?</picture>\n*|<img\b[^>]*\bsrc="docs/[^>]*>\n*|!\[[^\]]*\]\((?!\w+:)[^)]*\)\n*',
    re.DOTALL,
)


class Metadata(MetadataHookInterface):
    """Sets `urls`, and a `readme` whose links work wherever it is shown."""

    def update(self, metadata: dict[str, Any]) -> None:
        # The client has a link to this file, which stands where the repository begins.
        address = _find_address(Path(self.root, Path(__file__).name).resolve().parent)
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["urls"] = urls_at(address)
        # hatchling has read that of a source distribution already.
        page = with_links_to(address, text) if address else without_links(text)
        metadata.setdefault("readme", {"content-type": "text/markdown", "text": page})


def urls_at(address: str) -> dict[str, str]:
    """Return where GitHub has what others look for; sites like it have most of that there, too."""
    if not address:
        return {}
    return {
        "Source": address,
        "Documentation": f"{address}/blob/main/README.md",
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Security": f"{address}/blob/main/SECURITY.md",
    }


def with_links_to(address: str, page: str) -> str:
    """Return this Markdown page with absolute links."""
    page = _TO_FILE.sub(f"{address}/blob/main/", _TO_HEADING.sub(address, page))
    return _TO_PICTURE.sub(f"{address}/raw/main/", page)


def without_links(page: str) -> str:
    """Return this Markdown page without links and pictures that an index would not find."""
    return _LINK_TO_FILE.sub(r"\1", _PICTURE_OF_FILE.sub("", page))


def address_of(remote: str) -> str:
    """Return where browsers find the repository of this remote, or "" if no host is public."""
    found = _REMOTE.fullmatch(_SHORT.sub(r"ssh://\2/", remote, count=1))
    if found is None or (found["scheme"] == "http" and found["port"]):
        return ""
    port = found["port"] if found["scheme"] == "https" else None
    return f"https://{found['host']}{port or ''}/{found['path']}"


def _find_address(root: Path) -> str:
    # A build from a source distribution may run in the repository of another project.
    if (root / "PKG-INFO").exists():
        return ""
    remote = _origin(root)
    if remote:
        return address_of(remote)
    # After the remote: they name another project if its workflow builds a clone of this one.
    site, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return address_of(f"{site}/{name}") if site and name else ""


def _origin(root: Path) -> str:
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return ""
    words = [git, "-C", str(root), "remote", "get-url", "origin"]
    # All words are the build's own. Without such a remote, git says nothing here.
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()  # noqa: S603
