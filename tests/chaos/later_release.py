"""The release after this one, as far as others notice it: this code with all numbers one higher.

It reads what this release says and writes, and says and writes the same where both meet. Where two
of it meet, the links between them have frames that this release does not know.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from holdfast.distribution import CLIENT, NAME, release
from holdfast.store.format.layouts import LAYOUT
from tests.serving import ROOT

# What the later release says in its log for each link on which its own frames are spoken.
SPOKEN: Final = "the frames of the later release are spoken"
_PARTS: Final = ("app", "extensions", "pipeline", "static")
_IGNORED: Final = shutil.ignore_patterns("node_modules", "*.so")
_NEWS: Final = f"""
        if link.form > FORM:
            import logging
            said = lambda *_: logging.getLogger(__name__).warning({SPOKEN!r})
            link.hear(Kind.NEWS, said)
            link.send(pack(Kind.NEWS, 0))
        greeted(fault)
"""
# By file, what is replaced by what.
_CHANGES: Final = {
    # The forms of frames on links, a kind of frames, and a word in greetings.
    "web/forwarding/hello.py": [
        ("HIGHEST: Final = FORM\n", "HIGHEST: Final = FORM + 1\n"),
        ("        greeted(fault)\n", _NEWS),
        ("json.dumps(found)", 'json.dumps({**found, "news": 1})'),
    ],
    "web/forwarding/frames.py": [
        ("    HELLO = 0 ", "    NEWS = 99\n    HELLO = 0 "),
    ],
    # The forms of frames in logs, of which the former is written while any shard may not know more.
    "cluster/frames.py": [("frozenset({1})", "frozenset({1, 2})")],
    # The layout of stores.
    "store/format/layouts.py": [
        (
            ")\nOLDEST_LAYOUT",
            '    Layout(LATER, "this one", "everything is better", {}),\n)\nOLDEST_LAYOUT',
        ),
    ],
    # The row of a host, and the settings in it.
    "hosts/rows.py": [('    url: str = ""\n', '    url: str = ""\n    news: int = 1\n')],
    "compose/agreeing.py": [
        ('    "shards": lambda', '    "news": lambda settings: "good",\n    "shards": lambda'),
    ],
    # What one program of a supervisor leaves to the next: it goes on with its former code.
    "supervisor/control.py": [("STATE_VERSION = 1\n", "STATE_VERSION = 2\n")],
}


# Of a release that has forgotten the forms of this one, too.
_FORGETS: Final = {"web/forwarding/hello.py": [("\nFORM: Final = 1\n", "\nFORM: Final = 2\n")]}


def later_release(home: Path) -> Path:
    """Make its code, and return the folder that has it."""
    code = _copied(home / "later")
    _change_all(code, _CHANGES)
    return code


def forgetful_release(home: Path) -> Path:
    """Make the code of a release that has no form of links in common with this one."""
    code = _copied(home / "forgetful")
    _change_all(code, _FORGETS)
    return code


def _copied(code: Path) -> Path:
    for part in _PARTS:
        shutil.copytree(ROOT / part, code / part, symlinks=True, ignore=_IGNORED)
    (code / "holdfast").symlink_to("app")
    _name(code)
    return code


def _change_all(code: Path, changes: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    for name, each in changes.items():
        _change(code / "app" / name, each)


def _change(file: Path, changes: Sequence[tuple[str, str]]) -> None:
    text = file.read_text()
    for old, new in changes:
        assert text.count(old) == 1, f"{file.name} has {old!r} {text.count(old)} times"
        text = text.replace(old, new.replace("LATER", f"{LAYOUT + 1}"))
    file.write_text(text)


def _name(code: Path) -> None:
    """Let it say another version."""
    first, *rest = release().split(".")
    version = ".".join([str(int(first) + 1), *rest])
    for name in (NAME, CLIENT):
        metadata = code / f"{name.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (metadata / "METADATA").write_text(text)
