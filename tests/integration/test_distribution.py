"""The source distribution, and the wheel made from it, installed away from the sources."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.clients.node_client import require
from tests.serving import ROOT, Server, environment

COMETD = ROOT / "static" / "cometd" / "cometd.js"
# `make test` tests the whole compiled core in its installed copy.
INTERPRETED = {"COMPILE_CORE": "never"}
# The build keeps nothing, as if COMPILE_HOME was not set.
COMPILED = {"COMPILE_CORE": "always", "COMPILE_HOME": ""}
# Where a service of GitHub's builds.
# Git finds no repository: if this clone has an origin, the links would be those.
BUILT_AT = {
    "GIT_DIR": "/nowhere",
    "GITHUB_SERVER_URL": "https://github.example",
    "GITHUB_REPOSITORY": "us/holdfast",
}
BUILT_ELSEWHERE = {**BUILT_AT, "GITHUB_REPOSITORY": "others/product"}
# A user's extension, in a project that has an `app` of its own.
EXTENSION = """
from app import NAME
from holdfast import Json, ServerApi, ServerExtension, SessionApi


class Greeter(ServerExtension):
    def negotiate(self, session: SessionApi, handshake: Json, reply: Json, now: float) -> None:
        reply.setdefault("ext", {})["greeting"] = NAME


def install(server: ServerApi) -> None:
    server.extend(Greeter())
"""


def build(target: str, root: Path, home: Path, how: Mapping[str, str] = INTERPRETED) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "-d", str(home)]
    subprocess.run(command, cwd=root, env={**environment(), **how}, check=True, timeout=110)
    (built,) = (path for path in home.iterdir() if path.is_file())
    return built


def metadata_of(wheel: ZipFile) -> Message:
    [name] = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def own_files() -> Iterator[Path]:
    """The files in the folders of the package, without those that tools put there."""
    for folder in ("app", "extensions", "pipeline", "static"):
        for place, folders, names in os.walk(ROOT / folder):
            folders[:] = {*folders} - {"__pycache__", "node_modules"}
            if Path(place) == ROOT / "static":
                # Of npm; the documentation has a folder of this name, too.
                folders[:] = {*folders} - {"cometd"}
            for path in (Path(place, name) for name in names):
                yield path.relative_to(ROOT)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    if not COMETD.exists():
        pytest.skip("npm is missing: there is no cometd.js to put into it")
    home = tmp_path_factory.mktemp("sources")
    with tarfile.open(build("sdist", ROOT, home, BUILT_AT)) as archive:
        archive.extractall(home, filter="data")
    (unpacked,) = (path for path in home.iterdir() if path.is_dir())
    return unpacked


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """The wheel that others make of the source distribution."""
    home = tmp_path_factory.mktemp("wheel")
    return ZipFile(build("wheel", sources, home, {**INTERPRETED, **BUILT_ELSEWHERE}))


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """The wheel of the client, made of its source distribution."""
    home = tmp_path_factory.mktemp("client")
    with tarfile.open(build("sdist", ROOT / "client", home, BUILT_AT)) as archive:
        archive.extractall(home, filter="data")
    [unpacked] = (path for path in home.iterdir() if path.is_dir())
    return ZipFile(build("wheel", unpacked, home / "wheel", BUILT_ELSEWHERE))


@pytest.fixture(scope="module")
def server(
    wheel: ZipFile, client_wheel: ZipFile, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server of the wheels, where the sources are out of reach."""
    place = tmp_path_factory.mktemp("installed")
    wheel.extractall(place)
    client_wheel.extractall(place)
    (place / "app").mkdir()
    (place / "app" / "__init__.py").write_text('NAME = "hello from app"\n')
    (place / "greeter.py").write_text(EXTENSION)
    running = Server({"extension": ["greeter:install"]}, place)
    yield running
    assert running.stop() == 0


def test_a_source_distribution_has_exactly_the_files_that_a_wheel_needs(sources: Path) -> None:
    assert {path.name for path in sources.iterdir()} == {
        *(".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md"),
        *("app", "extensions", "hatch_build.py", "hatch_metadata.py"),
        *("pipeline", "pyproject.toml", "static"),
    }
    packed = {path.relative_to(sources) for path in sources.rglob("*/*") if path.is_file()}
    pages = {path.relative_to(ROOT) for path in COMETD.parent.iterdir() if path.suffix}
    assert packed == {*own_files(), *pages, COMETD.relative_to(ROOT).with_name("LICENSE")}


def test_building_a_source_distribution_without_cometd_js_fails_with_the_remedy(
    sources: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in sources.iterdir():
        if path.name != "static":
            (bare / path.name).symlink_to(path)
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=bare, env=environment(), capture_output=True, text=True)
    assert built.returncode != 0
    assert "install Node, then run make setup-pages" in built.stderr


# Does what `npm ci --prefix HOME` does here, without a network.
NPM = """#!/bin/sh
[ "$1 $2" = "ci --prefix" ] && mkdir -p "$3/node_modules/cometd" &&
cp {cometd}/*.js {cometd}/LICENSE "$3/node_modules/cometd"
"""


def test_a_source_distribution_can_be_built_in_a_clean_clone(sources: Path, tmp_path: Path) -> None:
    """`python -m build` runs the same backend; nobody ran make there."""
    clone = tmp_path / "clone"
    shutil.copytree(sources, clone, ignore=shutil.ignore_patterns("cometd"))
    (tmp_path / "npm").write_text(NPM.format(cometd=COMETD.parent))
    (tmp_path / "npm").chmod(0o700)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with tarfile.open(build("sdist", clone, tmp_path / "dist", {**INTERPRETED, **path})) as archive:
        names = {Path(name).name for name in archive.getnames()}
    assert names >= {"cometd.js", "cometd.js.gz"}


def test_a_wheel_installs_only_the_package_holdfast_and_its_manual_pages(wheel: ZipFile) -> None:
    names = wheel.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {re.sub(r"-[\d.]+\.", ".", top) for top in tops} == {
        "holdfast",
        "holdfast_bayeux.data",  # man pages
        "holdfast_bayeux.dist-info",
    }
    assert len(names) == len({*names})


def test_server_and_client_have_no_file_in_common_and_together_all_modules(
    wheel: ZipFile, client_wheel: ZipFile
) -> None:
    of_server, of_client = {*wheel.namelist()}, {*client_wheel.namelist()}
    assert not of_server & of_client
    modules = {path.relative_to(ROOT) for path in ROOT.glob("app/**/*.py")}
    assert {f"holdfast/{path.relative_to('app')}" for path in modules} <= of_server | of_client


def test_the_server_requires_the_client_of_its_own_version(
    wheel: ZipFile, client_wheel: ZipFile
) -> None:
    version = metadata_of(client_wheel)["Version"]
    assert metadata_of(wheel)["Version"] == version
    required = metadata_of(wheel).get_all("Requires-Dist", [])
    ours = [each for each in required if each.startswith("holdfast")]
    assert ours == [f"holdfast-bayeux-client=={version}"], "pyproject.toml: [project] dependencies"


def test_the_client_links_to_where_it_was_built(client_wheel: ZipFile) -> None:
    urls = metadata_of(client_wheel).get_all("Project-URL", [])
    assert "Source, https://github.example/us/holdfast" in urls


def test_a_wheel_has_the_files_that_the_server_reads(wheel: ZipFile) -> None:
    names = {*wheel.namelist()}
    assert "holdfast/static/cometd/cometd.js" in names
    assert names >= {f"holdfast/{path.relative_to(ROOT)}" for path in ROOT.glob("static/**/*.css")}
    scripts = {path.relative_to(ROOT / "app") for path in ROOT.glob("app/store/lua/*.lua")}
    assert names >= {f"holdfast/{path}" for path in scripts}
    assert not [name for name in names if "/npm/" in name or "__pycache__" in name]


def test_a_wheel_has_the_links_of_its_source_distribution(sources: Path, wheel: ZipFile) -> None:
    of_wheel = metadata_of(wheel)
    of_sources = message_from_bytes((sources / "PKG-INFO").read_bytes())
    urls = of_wheel.get_all("Project-URL", [])
    assert "Source, https://github.example/us/holdfast" in urls
    assert urls == of_sources.get_all("Project-URL")
    assert of_wheel.get_payload() == of_sources.get_payload()
    assert "](https://github.example/us/holdfast/blob/main/docs/" in str(of_wheel.get_payload())
    assert not of_wheel.get_all("Dynamic")


def test_a_compiled_wheel_has_machine_code_and_its_build_leaves_the_sources_unchanged(
    sources: Path, tmp_path: Path
) -> None:
    require(shutil.which("cc"), "cc")
    copy = tmp_path / "copy"
    shutil.copytree(sources, copy)
    # One module suffices; mypy would read all that its package imports.
    (copy / "app" / "__init__.py").write_text("")
    project = copy / "pyproject.toml"
    text = re.sub(
        r"(?m)^(compiled) = \[[^]]*\]",
        r'\1 = ["app/delivery/basics/json_text.py"]',
        project.read_text(),
    )
    project.write_text(text)
    before = sorted(copy.rglob("*"))
    wheel = ZipFile(build("wheel", copy, tmp_path / "wheel", COMPILED))
    assert sorted(copy.rglob("*")) == before
    kinds = Counter(Path(name).suffix for name in wheel.namelist())
    assert kinds[".so"]
    [tag] = re.findall(r"-cp\d+-cp\d+-(.+)\.whl$", str(wheel.filename))
    # An index takes this one, and no `linux_x86_64`.
    assert sys.platform != "linux" or tag.startswith("manylinux_")
    assert not kinds[".c"]
    assert "holdfast/delivery/basics/json_text.py" in wheel.namelist()


def test_a_wheel_has_the_version_of_the_latest_dated_section_in_the_changelog(
    wheel: ZipFile,
) -> None:
    version = Path(str(wheel.filename)).name.split("-")[1]
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## ([\d.]+) - \d{4}-\d\d-\d\d$", changes, re.MULTILINE)[0] == version


def test_an_installed_server_runs_an_extension_from_a_project_with_its_own_app(
    server: Server,
) -> None:
    hello = {"channel": "/meta/handshake", "version": "1.0"}
    body = json.dumps({**hello, "supportedConnectionTypes": ["long-polling"]}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/cometd", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        [reply] = json.load(answer)
    assert reply["successful"]
    assert reply["ext"]["greeting"] == "hello from app"


@pytest.mark.parametrize("path", ["/", "/chat/", "/static/cometd/cometd.js"])
def test_an_installed_server_has_its_pages(server: Server, path: str) -> None:
    with urllib.request.urlopen(f"{server.url}{path}", timeout=60) as answer:
        assert answer.status == 200
        assert answer.read()
