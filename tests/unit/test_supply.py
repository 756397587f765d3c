"""What is installed from outside is exactly what was looked at, and nothing read becomes code."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage, CoverageData

from tests.container import ROOT

LOCKS = sorted(ROOT.glob("requirements*.lock"))
NPM_LOCKS = [
    ROOT / folder / "package-lock.json"
    for folder in ("static/npm", "tests/clients", "bench/load/peers")
]
# An entry of a lock file: its first line, and those that are indented beneath it.
ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9][^\n]*)\n(?P<rest>(?:[ ]+[^\n]*\n)*)", re.M)

DANGEROUS = [
    pytest.param("import pickle\n", id="pickle"),
    pytest.param("from pickle import loads\n", id="a function of pickle"),
    pytest.param("import marshal\n", id="marshal"),
    pytest.param("import shelve\n", id="shelve"),
    pytest.param("eval(input())\n", id="eval"),
    pytest.param("exec(input())\n", id="exec"),
    pytest.param("import yaml\n\nyaml.load(input(), yaml.Loader)\n", id="all of YAML"),
]


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


@pytest.mark.parametrize("source", DANGEROUS)
@pytest.mark.parametrize("layer", ["app/store", "app/journal", "extensions", "pipeline"])
def test_what_runs_what_it_reads_does_not_pass_the_linter(layer: str, source: str) -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--output-format",
            "json",
            "--stdin-filename",
            f"{layer}/reader.py",
            "-",
        ],
        input=source,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=30,
    )
    codes = {each["code"] for each in json.loads(found.stdout)}
    assert codes & {"TID251", "S301", "S302", "S307", "S102", "S506"}, found.stdout


def test_coverage_counts_every_copy_of_a_module_as_its_source(tmp_path: Path) -> None:
    copies = {
        "app/settings.py": "settings.py",
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
