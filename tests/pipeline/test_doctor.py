"""The doctor says what is missing, and what to do about it."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from holdfast.pipeline import doctor
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.java import Java, NoJava


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [NoJava("JAVA_HOME", "not set"), NoJava("PATH", "no java")]
    monkeypatch.setattr(doctor, "look_for_java", lambda: seen)


@pytest.fixture
def some_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = Java(tmp_path, "21.0.1", "PATH")
    monkeypatch.setattr(doctor, "look_for_java", lambda: [found])
    monkeypatch.setattr(doctor, "find_java", lambda: found)


def run(*words: str) -> Result:
    return CliRunner().invoke(program, ["doctor", "--pipeline", *words])


@pytest.mark.parametrize("words", [[], ["--prepare", "--start"]])
def test_the_doctor_without_java_starts_nothing_and_names_a_package(
    no_java: None, words: list[str]
) -> None:
    said = run(*words)
    assert said.exit_code == 1
    [complaint] = [line for line in said.stdout.splitlines() if line.startswith("pipeline\tJava\t")]
    assert "openjdk-17-jre-headless" in complaint
    assert "start of Spark" not in said.stdout


def test_the_doctor_names_missing_packages_and_how_to_install_them(
    some_java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_PACKAGES", ("duckdb", "no-such-package"))
    said = run("--prepare")
    assert said.exit_code == 1
    # The pip of another Python would install into another environment.
    install = f"{sys.executable} -m pip install 'holdfast-bayeux[pipeline-local] @ file:"
    assert f"pipeline\tno-such-package\tno\tmissing: {install}" in said.stdout


def test_the_doctor_needs_no_spark_where_another_engine_is_enough(
    no_java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_OF_SPARK", ("no-such-package",))
    said = run()
    assert said.exit_code == 0, said.stdout
    [line] = [line for line in said.stdout.splitlines() if line.startswith("pipeline\tSpark")]
    assert "-\tnot installed, so use --engine local" in line
    assert "'holdfast-bayeux[pipeline] @ file:" in line
    assert "Java" not in said.stdout.replace(line, "")


def test_an_archive_that_cannot_be_created_is_reported(
    some_java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "make_archive", lambda java: False)
    said = run("--prepare")
    assert (said.exit_code, "could not be created" in said.stdout) == (1, True)


def test_a_spark_that_does_not_start_is_reported_with_the_reason(
    some_java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(engine: object) -> None:
        raise PipelineFailed("it is Tuesday")

    monkeypatch.setattr(doctor, "open_session", fail)
    said = run("--start")
    assert (said.exit_code, "start of Spark\tno\tit is Tuesday" in said.stdout) == (1, True)
