"""The wheel of the client, with what it requires: there is no server."""

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PathDistribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.serving import ROOT, Server, Servers, environment

# A server alone has 2 MB, or 9 with machine code.
MOST_BYTES = 80_000
TALK = """
import asyncio, sys
from holdfast import Client

async def talk(url):
    async with Client(url) as client, client.subscribe("/alone") as subscription:
        await client.publish("/alone", "hello")
        async for message in subscription:
            return message.data

print(asyncio.run(talk(sys.argv[1])))
print(*sorted({name for name in sys.modules if name.startswith("holdfast.")}))
"""


def link(package: str, place: Path) -> None:
    """Link what a package has installed."""
    found = distribution(package)
    for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
        (place / top).symlink_to(Path(str(found.locate_file(top))))


def link_all(requirements: Iterable[str], place: Path) -> None:
    """Link these packages and what they require, from the environment of the tests."""
    waiting, linked = [*requirements], set[str]()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        is_wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_wanted and name not in linked:
            linked.add(name)
            link(name, place)
            waiting += distribution(name).requires or ()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(built)]
    subprocess.run(words, cwd=ROOT / "client", check=True, stderr=subprocess.DEVNULL)
    [wheel] = built.iterdir()
    return wheel


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and its dependencies."""
    place = tmp_path_factory.mktemp("alone")
    ZipFile(wheel).extractall(place)
    [about] = place.glob("*.dist-info")
    link_all(PathDistribution(about).requires or (), place)
    return place


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with only its standard library and the packages in this folder."""
    return subprocess.run(
        [sys.executable, "-S", "-P", *words],
        cwd=place,
        env=environment(str(place)),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_wheel_is_small_and_has_no_module_of_the_server(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES
    parts = {name.removeprefix("holdfast/").partition("/")[0] for name in ZipFile(wheel).namelist()}
    assert {part for part in parts if "dist-info" not in part} == {
        *("__init__.py", "__main__.py", "client", "distribution.py", "py.typed")
    }


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.with_settings({})


def test_the_client_works_without_the_server_and_loads_none_of_its_modules(
    place: Path, server: Server
) -> None:
    said = run(place, "-c", TALK, server.url)
    assert said.stderr == ""
    heard, modules = said.stdout.splitlines()
    assert heard == "hello"
    assert all(f"{name}.".startswith("holdfast.client.") for name in modules.split())


def test_an_import_for_extensions_says_how_to_install_the_server(place: Path) -> None:
    said = run(place, "-c", "from holdfast import ServerExtension")
    assert said.returncode == 1
    line = said.stderr.splitlines()[-1]
    assert line.startswith("ImportError: holdfast.ServerExtension needs the server")
    assert "-m pip install 'holdfast-bayeux @ file:///" in line


@pytest.mark.parametrize("words", [(), ("--help",), ("serve", "--port", "0")])
def test_the_command_says_how_to_install_the_server(place: Path, words: tuple[str, ...]) -> None:
    said = run(place, "-m", "holdfast", *words)
    assert (said.returncode, said.stdout) == (1, "")
    [line] = said.stderr.splitlines()
    assert line.startswith("holdfast: the command needs the server")
    assert "-m pip install 'holdfast-bayeux @ file:///" in line
