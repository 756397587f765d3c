"""Where a server begins: with a supervisor or without, by what the operator has set."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.settings import Settings, read
from holdfast.supervisor.entry import IS_DEFAULT, is_wanted
from tests.pages import ROOT

VARIABLE = "HOLDFAST_SUPERVISOR"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees a file of settings that it has not written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)


def test_the_default_is_that_of_the_setting() -> None:
    assert Settings.model_fields["supervisor"].default is IS_DEFAULT
    assert is_wanted(["--port", "0"]) is IS_DEFAULT


@pytest.mark.parametrize("value", ["on", "off", "1", "0", "True", "false", "YES", "n"])
def test_variables_mean_what_they_mean_to_the_settings(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert is_wanted([]) is read(None, {}).supervisor


def test_a_flag_overrides_a_variable_and_that_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("holdfast.toml").write_text("supervisor = true")
    assert is_wanted([])
    monkeypatch.setenv(VARIABLE, "off")
    assert not is_wanted([])
    assert is_wanted(["--supervisor"])
    assert not is_wanted(["--supervisor", "--no-supervisor"])


@pytest.mark.parametrize("words", [["--config", "my.toml"], ["--port", "0", "--config=my.toml"]])
def test_the_file_may_have_another_name(words: list[str]) -> None:
    Path("holdfast.toml").write_text("supervisor = false")
    Path("my.toml").write_text("supervisor = true")
    assert is_wanted(words)
    assert not is_wanted([])


@pytest.mark.parametrize("text", ["supervisor =", "port = 8080", "\xff"])
def test_a_file_that_says_nothing_about_it_leaves_the_default(text: str) -> None:
    Path("holdfast.toml").write_text(text, "latin-1")
    assert is_wanted([]) is IS_DEFAULT
    assert is_wanted(["--config", "missing.toml"]) is IS_DEFAULT


def test_help_needs_no_supervisor() -> None:
    assert not is_wanted(["--supervisor", "--help"])


def test_windows_is_refused_with_a_sentence() -> None:
    program = """
import sys
sys.platform, sys.argv = "win32", ["holdfast", "serve"]
from holdfast.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    said = "holdfast cannot start: servers run on Linux and macOS, not on Windows\n"
    assert done.stderr == said


def test_the_supervisor_imports_nothing_but_the_standard_library() -> None:
    program = """
import sys
import holdfast.supervisor.replacing
print(*sorted(each for each in sys.modules if each.startswith("holdfast")))
"""
    # Without `site`, no other package is to be found.
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    loaded = done.stdout.split()
    assert "holdfast.supervisor.running" in loaded
    assert [each for each in loaded if each != "holdfast" and "supervisor" not in each] == []
