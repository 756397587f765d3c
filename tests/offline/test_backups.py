"""Backups of stores that run, and what is restored from them."""

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.data_directory import own_directory
from holdfast.offline.backup import back_up
from holdfast.offline.manifest import Manifest
from holdfast.offline.restore import restore
from holdfast.offline.snapshots import EmbeddedStore
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT
from holdfast.store.local.embedded import Durability, EmbeddedValkey
from holdfast.store.local.home import Home

pytestmark = pytest.mark.slow  # starts stores

KEYS = RedisKeys("holdfast")
TIME = 1_750_000_000_000


@asynccontextmanager
async def running(data: Path) -> AsyncIterator[EmbeddedStore]:
    """A store as a server that runs has it."""
    async with EmbeddedValkey(data, Durability.EVERYSEC):
        store = EmbeddedStore(data, KEYS.meta)
        try:
            yield store
        finally:
            store.close()


async def fill(store: EmbeddedStore) -> None:
    await store.ask("HSET", KEYS.meta, "deployment", "here", "version", LAYOUT)
    await store.ask("HSET", KEYS.sessions, "joe/1", "{}")


def settings(home: Path, **more: Any) -> Settings:
    return Settings(**{"data": home, **more})


async def backed_up(home: Path) -> Path:
    data, backup = home / "data", home / "backup"
    async with running(data) as store:
        await fill(store)
        await back_up(settings(data), backup, lambda: TIME)
    return backup


async def test_a_backup_has_what_the_store_had_at_its_moment_and_no_later_write(
    tmp_path: Path,
) -> None:
    data, backup, other = tmp_path / "data", tmp_path / "backup", tmp_path / "other"
    async with running(data) as store:
        await fill(store)
        found = await back_up(settings(data), backup, lambda: TIME)
        assert (found.deployment, found.layout) == ("here", LAYOUT)
        assert [each.time for each in found.stores] == [TIME]
        await store.ask("HSET", KEYS.sessions, "late/1", "{}")
        assert not Home(data).snapshot.exists()
    assert await restore(settings(other), backup) == Manifest.of(backup) == found
    for _ in range(2):
        async with running(other) as restored:
            assert await restored.ask("HGETALL", KEYS.sessions) == {b"joe/1": b"{}"}


async def test_only_the_owner_can_read_a_backup_and_what_is_restored_from_it(
    tmp_path: Path,
) -> None:
    before = os.umask(0)
    try:
        backup = await backed_up(tmp_path)
        await restore(settings(tmp_path / "new"), backup)
    finally:
        os.umask(before)
    files = [*backup.iterdir(), *Home(tmp_path / "new").files.iterdir()]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


async def test_a_backup_waits_until_the_store_has_written_its_own_files(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(data) as store:
        await fill(store)
        await store.ask("BGREWRITEAOF")
        await back_up(settings(data), tmp_path / "backup")
        assert len(Manifest.of(tmp_path / "backup").stores) == 1


async def test_a_directory_that_exists_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="exists: name a new directory"):
        await back_up(settings(tmp_path / "data"), tmp_path)


async def test_without_a_server_there_is_no_backup_and_no_directory(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="Is a server running there"):
        await back_up(settings(tmp_path / "data"), tmp_path / "backup")
    async with running(tmp_path / "data"):
        with pytest.raises(CannotStart, match="the store is empty"):
            await back_up(settings(tmp_path / "data"), tmp_path / "backup")
    assert os.listdir(tmp_path) == ["data"]


async def test_a_data_directory_with_a_store_or_a_server_is_left_alone(tmp_path: Path) -> None:
    backup = await backed_up(tmp_path)
    with pytest.raises(CannotStart, match="has a store"):
        await restore(settings(tmp_path / "data"), backup)
    with own_directory(tmp_path / "used"), pytest.raises(CannotStart, match="another running"):
        await restore(settings(tmp_path / "used"), backup)


@pytest.mark.parametrize(
    "damage", ["missing", "changed", "no index", "version", "outside", "half", "type"]
)
async def test_a_damaged_backup_is_refused_before_anything_changes(
    tmp_path: Path, damage: str
) -> None:
    backup = await backed_up(tmp_path)
    index, file = backup / "backup.json", backup / "shard-0.rdb"
    known = json.loads(index.read_bytes())
    if damage == "missing":
        file.unlink()
    elif damage == "changed":
        # Its end is a checksum, so the last byte may be any.
        *before, last = file.read_bytes()
        file.write_bytes(bytes([*before, last ^ 1]))
    elif damage == "no index":
        index.unlink()
    elif damage == "version":
        index.write_text(json.dumps({**known, "v": 2}))
    elif damage == "outside":
        known["stores"][0]["file"] = "../shard-0.rdb"
        index.write_text(json.dumps(known))
    elif damage == "type":
        known["stores"][0]["file"] = 7
        index.write_text(json.dumps(known))
    else:
        index.write_text(json.dumps({**known, "stores": []}))
    with pytest.raises(CannotStart):
        await restore(settings(tmp_path / "other"), backup)
    assert not (tmp_path / "other").exists()


async def test_a_store_in_memory_another_namespace_and_redis_are_refused(tmp_path: Path) -> None:
    backup = await backed_up(tmp_path)
    other = tmp_path / "other"
    for more, why in (
        ({"durability": "memory"}, "durability"),
        ({"namespace": "else"}, "namespace"),
        ({"redis": "redis://localhost"}, "redis"),
    ):
        with pytest.raises(CannotStart, match=why):
            await restore(settings(other, **more), backup)
    with pytest.raises(CannotStart, match="redis"):
        await back_up(settings(other, redis="redis://localhost"), tmp_path / "second")


async def test_a_restore_that_was_killed_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, other = await backed_up(tmp_path), tmp_path / "other"
    for step in ("_prepare", "_install", "_try_out"):
        with monkeypatch.context() as broken:
            broken.setattr(f"holdfast.offline.restore.{step}", killed)
            with pytest.raises(KeyboardInterrupt):
                await restore(settings(other), backup)
    await restore(settings(other), backup)
    async with running(other) as restored:
        assert await restored.ask("HGETALL", KEYS.sessions) == {b"joe/1": b"{}"}


def killed(*_: object) -> None:
    raise KeyboardInterrupt


async def test_a_full_disk_is_told_although_the_system_names_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, data = await backed_up(tmp_path), tmp_path / "new"

    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", write)
    with pytest.raises(CannotStart, match=f"^{data}: No space left on device$"):
        await restore(settings(data), backup)


async def test_a_backup_that_was_killed_leaves_no_directory_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.sleep(60)

    data = tmp_path / "data"
    async with running(data) as store:
        await fill(store)
        with monkeypatch.context() as broken:
            broken.setattr(EmbeddedStore, "_until_written", never)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await back_up(settings(data), tmp_path / "backup")
        assert not (tmp_path / "backup").exists()
        await back_up(settings(data), tmp_path / "backup")
    # A store without files on the disk would begin with a snapshot that was left.
    Home(data).snapshot.write_bytes(b"left")
    async with running(data):
        assert not Home(data).snapshot.exists()
