"""A folder with the package and an extension, which an operator updates while a server runs."""

import shutil
from pathlib import Path
from typing import NamedTuple

from tests.abuse.attacker import HANDSHAKE, Person
from tests.serving import PACKAGE

# It tells clients which code serves them.
_EXTENSION = """
from importlib.metadata import version
from holdfast import ServerApi, ServerExtension

class Telling(ServerExtension):
    def negotiate(self, session, handshake, reply, now):
        reply.setdefault("ext", {{}})["serves"] = [version("holdfast-bayeux"), {number}]

def install(server: ServerApi) -> None:
    server.extend(Telling())
"""
_BROKEN = """
def install(server):
    raise RuntimeError("there is no news today")
"""

_NAMES = ("holdfast-bayeux", "holdfast-bayeux-client")


class Packages:
    """`path` is for Python's search path; it stays, whatever it leads to."""

    extension = "telling:install"

    def __init__(self, home: Path) -> None:
        self._home = home
        self.path = home / "packages"
        self._version = "0"
        self.update("1.0")
        self.change_extension(1)

    def update(self, version: str) -> None:
        """Install another version of the package, with the same code."""
        made = self._home / version
        if self.path.exists():
            shutil.copytree(self.path, made)
            for name in _NAMES:
                shutil.move(made / _about(name, self._version), made / _about(name, version))
        else:
            shutil.copytree(PACKAGE, made / "holdfast")
            for name in _NAMES:
                (made / _about(name, version)).mkdir()
        for name in _NAMES:
            about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            (made / _about(name, version) / "METADATA").write_text(about)
        link = self._home / f"to-{version}"
        link.symlink_to(made)
        link.rename(self.path)
        self._version = version

    def change_extension(self, number: int) -> None:
        (self.path / "telling.py").write_text(_EXTENSION.format(number=number))

    def break_extension(self) -> None:
        (self.path / "telling.py").write_text(_BROKEN)


def _about(name: str, version: str) -> str:
    return f"{name.replace('-', '_')}-{version}.dist-info"


class Serving(NamedTuple):
    """Which code serves, and with which setting."""

    version: str
    extension: int
    timeout_ms: int

    @classmethod
    def at(cls, url: str) -> "Serving":
        with Person(url) as person:
            [reply] = person.ask(HANDSHAKE).messages()
        version, extension = reply["ext"]["serves"]
        return cls(version, extension, reply["advice"]["timeout"])
