"""Restores a deployment from a backup, into a data directory without stores."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.data_directory import own_directory
from holdfast.compose.placement import Placement, placed
from holdfast.offline.manifest import Manifest, StoreFile
from holdfast.offline.snapshots import EmbeddedStore, sha256_of, write_through
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT
from holdfast.store.local.embedded import Durability, EmbeddedValkey
from holdfast.store.local.home import Home

# Stands in the data directory while a restore is under way.
_MARK = "restore.unfinished"
_BASE = "appendonly.aof.1.base.rdb"
_INDEX = "appendonly.aof.manifest"


async def restore(settings: Settings, directory: Path) -> Manifest:
    """Put the stores of a backup into the data directory of the settings.

    If it is killed, no server starts with a part of them, and the next restore starts again.
    Raises `CannotStart` or `StoreUnavailable`.
    """
    if settings.redis is not None:
        raise CannotStart("redis: restore the store with the tools of that server")
    if settings.durability == Durability.MEMORY.value:
        raise CannotStart(
            "durability: a store in memory begins empty: set durability to everysec or always"
        )
    found = Manifest.of(directory)
    _check(found, directory, settings)
    place = placed(settings, 0, len(found.stores))
    try:
        with own_directory(place.data), _marked(place):
            _prepare(found, directory, place)
            place.make_others()
            # The first shard decides whether there is a deployment.
            for store in reversed(found.stores):
                _install(place.data_of(store.shard))
            for store in found.stores:
                await _try_out(settings, place.data_of(store.shard), store, found)
    except OSError as error:
        raise CannotStart(f"{error.filename or place.data}: {error.strerror}") from error
    return found


def _check(found: Manifest, directory: Path, settings: Settings) -> None:
    """Refuse a backup that this server cannot serve, or that is damaged."""
    if found.namespace != settings.namespace:
        raise CannotStart(
            f"namespace: the backup is of the namespace {found.namespace}: set namespace to it"
        )
    if found.layout > LAYOUT:
        raise CannotStart(f"{directory}: a later release made this backup (layout {found.layout})")
    for store in found.stores:
        file = directory / store.file
        if not file.is_file() or sha256_of(file) != store.sha256:
            raise CannotStart(f"{file} is missing or damaged")


@contextmanager
def _marked(place: Placement) -> Iterator[None]:
    """Mark the data directory until everything is there. Refuses one with stores."""
    mark = place.directory / _MARK
    if not mark.exists():
        shards = place.directory / "shards"
        if Home(place.directory).files.exists() or (shards.exists() and any(shards.iterdir())):
            raise CannotStart(
                f"{place.directory} has a store: name another data directory with --data, or move "
                "the directories store and shards away"
            )
        mark.touch(mode=0o600)
        write_through(place.directory)
    yield
    mark.unlink()
    write_through(place.directory)


def _prepare(found: Manifest, directory: Path, place: Placement) -> None:
    """Copy the files beside their places. What a killed restore has left is removed."""
    shutil.rmtree(place.directory / "shards", ignore_errors=True)
    shutil.rmtree(Home(place.directory).files, ignore_errors=True)
    place.make_others()
    for store in found.stores:
        home = Home(place.data_of(store.shard))
        home.directory.mkdir(mode=0o700, exist_ok=True)
        copy = _beside(home)
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir(mode=0o700)
        shutil.copyfile(directory / store.file, copy / _BASE)
        (copy / _INDEX).write_text(f"file {_BASE} seq 1 type b\n")
        for file in (copy / _BASE, copy / _INDEX):
            file.chmod(0o600)
            write_through(file)
        write_through(copy)


def _beside(home: Home) -> Path:
    return home.files.with_name(f"{home.files.name}.unfinished")


def _install(data: Path) -> None:
    home = Home(data)
    _beside(home).rename(home.files)
    write_through(home.directory)


async def _try_out(settings: Settings, data: Path, store: StoreFile, found: Manifest) -> None:
    """Start the store once, which shows that it can be read."""
    key = RedisKeys(settings.namespace, store.shard).meta
    async with EmbeddedValkey(data, Durability(settings.durability)):
        opened = EmbeddedStore(data, key)
        try:
            name = await opened.ask("HGET", key, "deployment")
        finally:
            opened.close()
    if name != found.deployment.encode():
        raise CannotStart(
            f"the store of shard {store.shard} is not of the deployment {found.deployment}"
        )
