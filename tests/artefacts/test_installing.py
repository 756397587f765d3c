"""Server and client, as they were built, installed by the usual tools in empty environments."""

import shutil
import sys
import urllib.request
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.artefacts.conftest import LIMIT_S, Machine, require_built
from tests.browser.chatting import join, lines, say

TOOLS = Path(sys.executable).parent
SERVER = "holdfast-bayeux"
CLIENT_WHEEL = "holdfast_bayeux_client-*-py3-none-any.whl"
PURE = "holdfast_bayeux-*-py3-none-any.whl"
COMPILED = "holdfast_bayeux-*-cp3*.whl"
SOURCES = "holdfast_bayeux-*.tar.gz"
CLIENT_SOURCES = "holdfast_bayeux_client-*.tar.gz"
TALK = """
import asyncio, sys
from holdfast import Client

async def talk(url):
    async with Client(url) as client, client.subscribe("/greetings") as greetings:
        await client.publish("/greetings", "hello")
        async for message in greetings:
            return message.data

print(asyncio.run(talk(sys.argv[1])))
"""


def environment_of(machine: Machine, name: str = "venv") -> Path:
    """The Python of a new environment with pip and nothing else."""
    home = machine.home / name
    python = home / "bin" / "python"
    machine.run(TOOLS / "uv", "venv", "--python", sys.executable, home)
    machine.run(TOOLS / "uv", "pip", "install", "--python", python, "pip")
    return python


def installed_by_pip(machine: Machine) -> Path:
    python = environment_of(machine)
    machine.run(python, "-m", "pip", "install", SERVER)
    return python.with_name("holdfast")


def installed_by_pipx(machine: Machine) -> Path:
    machine.run(TOOLS / "pipx", "install", "--python", sys.executable, SERVER)
    return machine.home / "bin" / "holdfast"


def installed_by_uv(machine: Machine) -> Path:
    machine.run(TOOLS / "uv", "tool", "install", "--python", sys.executable, SERVER)
    return machine.home / "bin" / "holdfast"


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
        text: str = answer.read().decode()
    return text


@pytest.mark.parametrize(
    ("install", "artefact", "core"),
    [
        (installed_by_pip, COMPILED, "compiled"),
        (installed_by_pipx, PURE, "interpreted"),
        (installed_by_uv, COMPILED, "compiled"),
        (installed_by_uv, SOURCES, "interpreted"),
    ],
    ids=["pip-compiled", "pipx-pure", "uv-compiled", "uv-sources"],
)
def test_what_was_built_serves_wherever_its_name_installs_it(
    machine: Machine, install: object, artefact: str, core: str
) -> None:
    assert callable(install)
    if artefact == COMPILED and not shutil.which("cc"):
        pytest.skip("there is no compiler")
    machine.variables = {**machine.variables, "COMPILE_CORE": "never"}
    machine.offer(artefact, CLIENT_SOURCES if artefact == SOURCES else CLIENT_WHEEL)
    holdfast = install(machine)
    said = machine.run(holdfast, "--version")
    assert f"({core} core" in said
    with machine.serving(holdfast) as url:
        for path in ("/", "/chat/", "/console/", "/docs/", "/static/cometd/cometd.js"):
            assert get(f"{url}{path}"), path


def test_a_tool_runs_the_server_without_installing_it(machine: Machine) -> None:
    machine.offer(PURE, CLIENT_WHEEL)
    once = (TOOLS / "uv", "tool", "run", "--python", sys.executable, "--from", SERVER, "holdfast")
    assert "(interpreted core" in machine.run(*once, "--version")


def test_a_client_alone_is_small_and_talks_to_a_server(machine: Machine) -> None:
    machine.offer(PURE, CLIENT_WHEEL)
    python = environment_of(machine, "alone")
    machine.run(TOOLS / "uv", "pip", "install", "--python", python, f"{SERVER}-client")
    [package] = (machine.home / "alone").glob("lib/python*/site-packages/holdfast")
    sizes = [path.stat().st_size for path in package.rglob("*.py")]
    assert sum(sizes) < 200_000
    said = machine.run(python, "-m", "holdfast", fails=True)
    assert "the command needs the server" in said
    with machine.serving(installed_by_uv(machine)) as url:
        assert machine.run(python, "-c", TALK, url) == "hello\n"


def test_the_pages_of_an_installed_server_work(machine: Machine, profile: BrowserContext) -> None:
    machine.offer(PURE, CLIENT_WHEEL)
    with machine.serving(installed_by_uv(machine)) as url:
        chat = profile.new_page()
        join(chat, url, "Ann")
        say(chat, "from a wheel")
        expect(lines(chat)).to_have_text(["from a wheel"])
        console = profile.new_page()
        console.goto(f"{url}/console/")
        token = (machine.home / "data" / "admin-token").read_text().strip()
        console.get_by_label("Token").fill(token)
        console.get_by_role("button", name="Sign in").click()
        expect(console.get_by_role("navigation").first).to_be_visible()


def test_a_server_beside_the_former_name_says_what_to_type_and_that_mends_it(
    machine: Machine,
) -> None:
    """0.3 was `holdfast`: it has files of the same names, which go when it is removed."""
    former = machine.home / "holdfast-0.3.0-py3-none-any.whl"
    about = "Metadata-Version: 2.1\nName: holdfast\nVersion: 0.3.0\nSummary: A Bayeux server\n"
    files = {"holdfast/__init__.py": "", "holdfast/client/__init__.py": ""}
    files |= {
        "holdfast-0.3.0.dist-info/METADATA": about,
        "holdfast-0.3.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, "holdfast-0.3.0.dist-info/RECORD"))
    with ZipFile(former, "w") as wheel:
        for name, text in {**files, "holdfast-0.3.0.dist-info/RECORD": record}.items():
            wheel.writestr(name, text)
    machine.offer(CLIENT_WHEEL)
    python = environment_of(machine)
    both = [require_built(CLIENT_WHEEL), require_built(PURE)]
    machine.run(TOOLS / "uv", "pip", "install", "--python", python, former, *both)
    said = machine.run(python, "-m", "holdfast", "serve", "--port", "0", fails=True)
    assert "is still installed here by its earlier name" in said
    remedy = said[said.index(f"{python} -m pip uninstall") :].strip()
    machine.run("/bin/sh", "-c", remedy)
    with machine.serving(python, "-m", "holdfast") as url:
        assert get(f"{url}/chat/")


@pytest.mark.parametrize("pattern", [CLIENT_WHEEL, PURE])
def test_what_an_index_shows_has_no_link_that_it_could_not_follow(pattern: str) -> None:
    with ZipFile(require_built(pattern)) as wheel:
        [name] = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
        about = message_from_bytes(wheel.read(name))
    text = str(about.get_payload())
    assert text.startswith("# Holdfast")
    links = [part.partition(")")[0] for part in text.split("](")[1:]]
    assert [link for link in links if not link.startswith(("https://", "http://"))] == []
