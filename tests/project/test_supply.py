"""Packages from outside are pinned, and data that is read is never executed."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from coverage import Coverage, CoverageData

from tests.container import ROOT

LOCKS = sorted(ROOT.glob("requirements*.lock"))
NPM_LOCKS = [
    ROOT / folder / "package-lock.json"
    for folder in ("static/npm", "tests/clients", "tests/clients/conformance", "bench/load/peers")
]
MAVEN = "{http://maven.apache.org/POM/4.0.0}"
# An entry of a lock file: its first line, and those that are indented beneath it.
ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9][^\n]*)\n(?P<rest>(?:[ ]+[^\n]*\n)*)", re.M)

DANGEROUS = {
    "pickle": "import pickle\n",
    "a function of pickle": "from pickle import loads\n",
    "marshal": "import marshal\n",
    "shelve": "import shelve\n",
    "eval": "eval(input())\n",
    "exec": "exec(input())\n",
    "all of YAML": "import yaml\n\nyaml.load(input(), yaml.Loader)\n",
}
# The codes by which the linter refuses them.
REFUSED = {"TID251", "S301", "S302", "S307", "S102", "S506"}
READ_OUTSIDE = ("app/store", "app/journal", "extensions", "pipeline")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_packages_from_pypi_have_one_version_and_hashes(lock: Path) -> None:
    entries = list(ENTRY.finditer(lock.read_text()))
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9.\[\]-]+==[^ ]+ ", entry["name"]), entry["name"]
        assert "--hash=sha256:" in entry["rest"], entry["name"]


@pytest.mark.parametrize("lock", NPM_LOCKS, ids=lambda path: path.parent.name)
def test_packages_from_npm_have_one_version_and_a_hash(lock: Path) -> None:
    packages: dict[str, dict[str, Any]] = json.loads(lock.read_text())["packages"]
    installed = {name: package for name, package in packages.items() if name}
    assert installed
    for name, package in installed.items():
        assert package["version"][0].isdigit(), name
        assert package["integrity"].startswith("sha512-"), name


@pytest.mark.parametrize("folder", ["bench/load/peers/cometd-jetty", "tests/clients/java"])
def test_packages_from_maven_have_one_version(folder: str) -> None:
    project = ElementTree.parse(ROOT / folder / "pom.xml")
    wanted = [*project.iter(f"{MAVEN}dependency"), *project.iter(f"{MAVEN}plugin")]
    assert wanted
    for each in wanted:
        version = each.findtext(f"{MAVEN}version") or ""
        name = version.removeprefix("${").removesuffix("}")
        given = project.findtext(f"{MAVEN}properties/{MAVEN}{name}") if name != version else version
        assert re.fullmatch(r"\d+\.\d+\.\d+", given or ""), each.findtext(f"{MAVEN}artifactId")


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_make_without_node_says_what_to_install(tmp_path: Path) -> None:
    for name in ("sh", "find"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    made = subprocess.run(
        [str(shutil.which("make")), "setup-pages"],
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stderr.endswith("install Node, then run make setup-pages\n")


def test_modules_that_execute_what_they_read_do_not_pass_the_linter(tmp_path: Path) -> None:
    for layer in READ_OUTSIDE:
        for name, source in DANGEROUS.items():
            module = tmp_path / layer / f"{name}.py"
            module.parent.mkdir(parents=True, exist_ok=True)
            module.write_text(source)
    config = f"--config={ROOT / 'pyproject.toml'}"
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "json", config],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=30,
    )
    codes: dict[str, set[str]] = {}
    for each in json.loads(found.stdout):
        codes.setdefault(str(Path(each["filename"]).relative_to(tmp_path)), set()).add(each["code"])
    for layer in READ_OUTSIDE:
        for name in DANGEROUS:
            assert codes[f"{layer}/{name}.py"] & REFUSED, (layer, name)


def test_coverage_counts_every_copy_of_a_module_as_its_source(tmp_path: Path) -> None:
    copies = {
        "app/logs.py": "logs.py",
        "extensions/ack.py": "extensions/ack.py",
        "pipeline/lake.py": "pipeline/lake.py",
    }
    seen = CoverageData(str(tmp_path / "seen"))
    seen.add_arcs({str(ROOT / path): {(1, 2)} for path in copies})
    for folder in (".venv/lib/python3.11/site-packages", "installed"):
        seen.add_arcs({f"/any/{folder}/holdfast/{path}": {(2, 3)} for path in copies.values()})
    seen.write()
    coverage = Coverage(str(tmp_path / "all"), config_file=str(ROOT / "pyproject.toml"))
    coverage.combine([seen.data_filename()])
    assert coverage.get_data().measured_files() == {str((ROOT / path).resolve()) for path in copies}
