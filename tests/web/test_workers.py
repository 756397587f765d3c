"""How many workers there are: what the settings say, or the processors and the memory allow."""

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from holdfast.compose import workers
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.workers import Allowance, allowance, count_of, reason_of, stored_here
from holdfast.settings import Settings

GIB = 1024**3


def settings(**given: Any) -> Settings:
    return Settings(**given)


def group(path: Path, cpu: str | None = None, memory: str | None = None) -> None:
    path.mkdir(parents=True, exist_ok=True)
    if cpu is not None:
        (path / "cpu.max").write_text(cpu + "\n")
    if memory is not None:
        (path / "memory.max").write_text(memory + "\n")


@pytest.fixture(autouse=True)
def large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(100)})
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**28}.__getitem__)


def test_as_many_are_allowed_as_there_are_processors_up_to_64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert allowance(tmp_path, "/").workers == 64
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert allowance(tmp_path, "/").workers == 3


def test_limits_of_the_control_group_and_of_those_above_it_count(tmp_path: Path) -> None:
    group(tmp_path / "a" / "b", cpu="max 100000", memory="max")
    assert allowance(tmp_path, "/a/b").workers == 64
    group(tmp_path / "a" / "b", cpu="550000 100000")
    assert allowance(tmp_path, "/a/b").workers == 6
    group(tmp_path / "a", cpu="200000 100000")
    assert allowance(tmp_path, "/a/b").workers == 2
    group(tmp_path / "a", cpu="max 100000", memory=str(2 * GIB))
    assert allowance(tmp_path, "/a/b").workers == 4
    group(tmp_path, memory="1000")
    assert allowance(tmp_path, "/a/b").workers == 1


def test_a_deployment_keeps_its_number_of_workers_with_auto(tmp_path: Path) -> None:
    assert stored_here(tmp_path) is None
    (tmp_path / "store" / "appendonlydir").mkdir(parents=True)
    assert stored_here(tmp_path) is None
    (tmp_path / "store" / "appendonlydir" / "manifest").touch()
    assert stored_here(tmp_path) == 1
    (tmp_path / "shards" / "1").mkdir(parents=True)
    (tmp_path / "shards" / "2").mkdir()
    assert stored_here(tmp_path) == 3
    assert count_of(settings(workers="auto"), is_supervised=True, stored=3) == 3
    assert count_of(settings(workers=2), is_supervised=True, stored=3) == 2


def test_one_worker_is_the_default_and_needs_no_supervisor() -> None:
    assert count_of(settings(), is_supervised=False) == 1
    assert count_of(settings(workers="auto"), is_supervised=False) == 1


def test_several_workers_need_a_supervisor() -> None:
    assert count_of(settings(workers=3), is_supervised=True) == 3
    with pytest.raises(CannotStart, match="3 workers need a supervisor"):
        count_of(settings(workers=3), is_supervised=False)


@pytest.mark.parametrize("wrong", [0, 65, -1, "many", "1.5", ""])
def test_a_wrong_number_of_workers_is_refused_with_one_complaint(wrong: object) -> None:
    with pytest.raises(ValidationError) as refused:
        settings(workers=wrong)
    [fault] = refused.value.errors()
    assert fault["loc"] == ("workers",)
    assert "must be a number from 1 to 64, or auto" in fault["msg"]


def test_there_are_as_many_shards_as_workers() -> None:
    assert settings(workers="2", shards=2).workers == 2
    assert count_of(settings(workers="auto", shards=5), is_supervised=True) == 5
    with pytest.raises(ValidationError, match="shards must be as many as workers"):
        settings(workers=2, shards=4)


def test_auto_says_what_it_takes_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group(tmp_path / "a", cpu="250000 100000", memory=str(3 * GIB))
    assert str(allowance(tmp_path, "/a")) == "2.5 processors and 3.0 GiB of memory allow 3"
    monkeypatch.setattr(workers, "allowance", lambda: Allowance(2.0, 8 * GIB))
    assert reason_of(settings(workers="auto"), None) == (
        "2 processors and 8.0 GiB of memory allow 2, which stays the number of this deployment"
    )
    assert reason_of(settings(workers="auto"), 3).startswith("as the deployment was created with")
