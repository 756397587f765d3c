"""Builds the site that the server shows at `/docs/`.

`python -m docs.build` makes `static/docs/` with Zensical, without network; `make docs` does it
after installing what it needs. A link or an anchor that leads nowhere ends it. The order of the
pages is that of `docs/README.md`.

Everything that a browser loads is in the folder, compressed. `policy.txt` has the hashes of what
stands in pages, for their Content-Security-Policy, and `llms.txt` a line for each page.
"""

import argparse
import base64
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile, ZipInfo

DOCS = Path(__file__).parent
ROOT = DOCS.parent
SITE = ROOT / "static/docs"
KINDS = ("tutorials", "how-to", "reference", "explanation", "building")
# Pages from outside of `docs/`, with their names on the site.
GUESTS = {
    "CHANGELOG.md": "reference/changes.md",
    "CONTRIBUTING.md": "building/contributing.md",
    "SECURITY.md": "explanation/reporting-a-vulnerability.md",
}
# The theme has more than these pages use: its older look, and a page for servers that have none.
_NOT_USED = ("assets/stylesheets/classic", "404.html", "sitemap.xml", ".zensical", "objects.inv")
# Of the style that the theme's script gives its search. After another version of the theme, a
# browser names the new hash in the test that looks for complaints.
_STYLE = "sha256-NwSx/R2V/U4jnW0Tq5pQ53Y/rzPVJ4dqE7D6UTA/J1k="

_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
# GitHub draws these diagrams; the site, which has no script for them, says the same in a table.
_STATES = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^\s*(\S+) --> (\S+?)(?:: (.+))?$", re.MULTILINE)
_ENDS = {"[*]": ""}
_SCRIPT = re.compile(
    r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>(.*?)</script>", re.DOTALL
)
# Loaded by browsers without being asked. A `sourceMappingURL` is not, and neither is a link.
_OUTSIDE = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//|<link\b[^>]*href=\"https?:"
)


class Entry(NamedTuple):
    """A page in the order of reading."""

    section: str
    path: str
    title: str
    about: str


def entries() -> Iterator[Entry]:
    """Yield all pages in the order of `docs/README.md`, with their titles and first sentences."""
    index = (DOCS / "README.md").read_text("utf-8")
    yield Entry("", "README.md", "Holdfast", _first_sentence(index))
    for part in index.split("\n## ")[1:]:
        section, _, text = part.partition("\n")
        for _, link in _LINK.findall(text):
            path = _on_site(os.path.normpath(link.partition("#")[0]))
            if path is not None:
                source = (_source_of(path)).read_text("utf-8")
                title = re.sub("`", "", source.partition("\n")[0].lstrip("# "))
                yield Entry(section, path, title, _first_sentence(source))


def _source_of(path: str) -> Path:
    names = {on_site: name for name, on_site in GUESTS.items()}
    return ROOT / names[path] if path in names else DOCS / path


def _on_site(path: str) -> str | None:
    """Return the path on the site of a path below `docs/`, or None for what is not there."""
    if path.startswith("../"):
        return GUESTS.get(path[3:])
    return path if path.endswith(".md") else None


def _first_sentence(source: str) -> str:
    """Return what a page is about: the first sentence of its first paragraph of prose."""
    for block in _CODE.sub(lambda found: "" if found[0][:3] == "```" else found[0], source).split(
        "\n\n"
    ):
        text = " ".join(_LINK.sub(r"\1", block).split())
        if text and not re.match(r"[#|<>*\d-]", text):
            return re.split(r"(?<=[.:?])\s", text)[0].rstrip(":").replace("**", "")
    return ""


def prepare(home: Path) -> None:
    """Lay out the pages and the configuration as Zensical wants them."""
    pages = home / "pages"
    for source in [*DOCS.rglob("*.md"), *(ROOT / name for name in GUESTS)]:
        name = GUESTS.get(source.name, "") if source.parent == ROOT else source.relative_to(DOCS)
        place = pages / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            for_site(source.read_text("utf-8"), source, place.relative_to(pages)), "utf-8"
        )
    shutil.copytree(DOCS / "pictures", pages / "pictures")
    for source in sorted([*(DOCS / "examples").rglob("*"), *(ROOT / "deploy").rglob("*")]):
        if (shown := _as_text(source)) is not None:
            place = pages / shown
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
    for folder in sorted((DOCS / "examples").iterdir()):
        if folder.is_dir() and folder.name != "__pycache__":
            _zip(folder, pages / f"{folder.relative_to(DOCS)}.zip")
    shutil.copytree(DOCS / "theme", pages / "theme")
    (home / "zensical.toml").write_text(_configuration(), "utf-8")


def _as_text(source: Path) -> str | None:
    """Return the path on the site of a file of an example or a deployment, or None."""
    if not source.is_file() or "__pycache__" in source.parts:
        return None
    if source.is_relative_to(DOCS / "examples"):
        return f"{source.relative_to(DOCS)}.txt"
    # The command that makes releases is for builders.
    is_shown = source.is_relative_to(ROOT / "deploy") and "release" not in source.parts
    return f"{source.relative_to(ROOT)}.txt" if is_shown else None


def _zip(folder: Path, place: Path) -> None:
    """Write an example's files, at their paths in a clone, so that commands of pages find them."""
    with ZipFile(place, "w") as archive:
        for source in sorted(folder.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                # Without the time, so that equal files give an equal archive.
                archive.writestr(ZipInfo(str(source.relative_to(ROOT))), source.read_bytes())


def for_site(text: str, source: Path, place: Path) -> str:
    """Return the Markdown of a page with links that lead somewhere on the site.

    What the site lacks, such as tests, is named by its path in the sources.
    """

    def link(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        if re.match(r"\w+:|#|/", target):
            return found[0]
        path, mark, anchor = target.partition("#")
        full = Path(os.path.normpath(source.parent / path))
        if (shown := _as_text(full)) is not None:
            there = shown
        elif full.is_relative_to(DOCS):
            there = str(full.relative_to(DOCS))
            if full.is_relative_to(DOCS / "examples") and full.is_dir():
                there += ".zip"
            elif full.is_dir():
                return f"{words} (`{full.relative_to(ROOT)}`)"
        elif full.parent == ROOT and full.name in GUESTS:
            there = GUESTS[full.name]
        elif full == ROOT / "README.md":
            there, mark, anchor = "README.md", "", ""
        else:
            return f"{words} (`{full.relative_to(ROOT)}`)" if "\0" not in words else words
        if there == str(place) and not anchor:
            return words
        return f"[{words}]({os.path.relpath(there, place.parent)}{mark}{anchor})"

    parts = _CODE.split(_STATES.sub(_steps_in_words, text))
    # Links whose words are code span several parts.
    whole = "".join(f"\0{number}\0" if number % 2 else part for number, part in enumerate(parts))
    return re.sub("\0(\\d+)\0", lambda found: parts[int(found[1])], _LINK.sub(link, whole))


def _steps_in_words(found: re.Match[str]) -> str:
    """Return the table of a diagram of states."""
    rows = [
        f"| {_ENDS.get(before, before)} | {why} | {_ENDS.get(after, after)} |"
        for before, after, why in _STEP.findall(found[1])
    ]
    return "\n".join(["| From | Because of | To |", "| --- | --- | --- |", *rows])


def _configuration() -> str:
    sections: dict[str, list[str]] = {}
    for entry in entries():
        line = f"{{ {_quoted(entry.title)} = {_quoted(entry.path)} }}"
        if line not in sections.setdefault(entry.section, []):
            sections[entry.section].append(line)
    nav = [
        line if not name else f"{{ {_quoted(name)} = [\n        {_joined(lines)}\n    ] }}"
        for name, lines in sections.items()
        for line in [_joined(lines)]
    ]
    return (
        (DOCS / "zensical.toml")
        .read_text("utf-8")
        .replace("# nav", f"nav = [\n    {_joined(nav)}\n]")
    )


def _joined(lines: list[str]) -> str:
    return ",\n    ".join(lines)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def build(site: Path) -> None:
    """Build the site into this folder, which is replaced."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        prepare(home)
        words = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
        # All words are the build's own.
        done = subprocess.run(words, cwd=home, capture_output=True, text=True)  # noqa: S603
        made = home / "site"
        if done.returncode or not made.is_dir():
            raise SystemExit(re.sub("\x1b\\[[\\d;]*m", "", done.stdout + done.stderr))
        finish(made)
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(made, site)


def finish(made: Path) -> None:
    """Remove what is not used, check what is left, add what machines read, and compress all."""
    for name in _NOT_USED:
        place = made / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
    pages = {path: path.read_text("utf-8") for path in sorted(made.rglob("*.html"))}
    for path, text in pages.items():
        if _OUTSIDE.search(text):
            raise SystemExit(f"{path.relative_to(made)} loads something from another server")
    _check_anchors(made, pages)
    scripts = {script for text in pages.values() for script in _SCRIPT.findall(text)}
    policy = [f"script-src {_hash_of(script)}" for script in scripts] + [f"style-src {_STYLE}"]
    (made / "policy.txt").write_text("".join(f"{each}\n" for each in sorted(policy)), "utf-8")
    (made / "llms.txt").write_text(llms(), "utf-8")
    for path in sorted(made.rglob("*")):
        if path.is_file() and path.suffix != ".png" and path.name != "policy.txt":
            # Without the time, so that equal pages give equal files.
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
            path.unlink()


def _check_anchors(made: Path, pages: dict[Path, str]) -> None:
    """Fail for a link to a page or an anchor that is not there."""
    anchors = {path: {*re.findall(r'\bid="([^"]+)"', text)} for path, text in pages.items()}
    lost = []
    for path, text in pages.items():
        for href in re.findall(r'<a\b[^>]*\bhref="([^"]*)"', text):
            if re.match(r"\w+:", href):
                continue
            target, _, anchor = href.partition("#")
            place = (path.parent / target).resolve() if target else path
            place = place / "index.html" if place.is_dir() else place
            wanted = anchors.get(place)
            if not place.exists() or (anchor and wanted is not None and anchor not in wanted):
                lost.append(f"{path.relative_to(made)}: {href}")
    if lost:
        raise SystemExit("links that lead nowhere:\n" + "\n".join(lost))


def _hash_of(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def llms() -> str:
    """Return the list of pages for programs that read documentation."""
    lines, section = [], None
    for entry in dict.fromkeys(entries()):
        if not entry.section:
            lines += [f"# {entry.title}\n", f"> {entry.about}"]
            continue
        if entry.section != section:
            section = entry.section
            lines.append(f"\n## {section}\n")
        path = re.sub(r"(README|index)?\.md$", "", entry.path)
        lines.append(f"- [{entry.title}]({path}/): {entry.about}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the site of the documentation.")
    parser.add_argument("site", nargs="?", type=Path, default=SITE, help="where to (static/docs)")
    site: Path = parser.parse_args().site
    build(site)
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    say: Callable[[str], object] = sys.stdout.write
    say(f"{site}: {len([*site.rglob('index.html.gz')])} pages, {size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
