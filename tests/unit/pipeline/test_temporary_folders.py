"""Temporary folders outlive no process, not even one that was killed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from holdfast.pipeline.storage.temporary_folders import (
    begin_draft,
    end_draft,
    remove_abandoned,
    temporary_folder,
)

_KILLED = """
import os, signal
from holdfast.pipeline.storage.temporary_folders import begin_draft
draft = begin_draft("half.parquet")
draft.write_bytes(b"half of a file")
print(draft, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_draft_is_gone_once_it_is_in_its_place(place: Path) -> None:
    draft = begin_draft("file.parquet")
    draft.write_bytes(b"a file")
    end_draft(draft)
    assert [*place.iterdir()] == []


def test_what_a_killed_process_has_left_is_removed_by_a_later_one(place: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED], stdout=subprocess.PIPE, text=True)
    assert Path(done.stdout.strip()).read_bytes() == b"half of a file"
    remove_abandoned()
    assert [*place.iterdir()] == []


def test_a_later_command_removes_what_a_killed_one_has_left(place: Path) -> None:
    subprocess.run([sys.executable, "-c", _KILLED], stdout=subprocess.DEVNULL)
    with temporary_folder() as folder:
        assert [*place.iterdir()] == [folder]
    assert [*place.iterdir()] == []


def test_what_is_in_use_stays() -> None:
    with temporary_folder() as folder:
        draft = begin_draft("file.parquet")
        draft.touch()
        remove_abandoned()
        assert folder.is_dir()
        assert draft.exists()
        end_draft(draft)


def test_only_our_own_folders_are_removed(place: Path) -> None:
    other = place / "elsewhere"
    other.mkdir()
    (place / "holdfast-temporary-link").symlink_to(other)
    (other / "file").touch()
    remove_abandoned()
    assert (other / "file").exists()
    assert os.readlink(place / "holdfast-temporary-link") == str(other)
