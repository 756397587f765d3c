"""Backs up a deployment: the stores of all its shards, while it runs."""

import asyncio
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from holdfast.cluster.shards import MapUnreadable, map_of
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.placement import placed
from holdfast.offline.manifest import Manifest, StoreFile
from holdfast.offline.snapshots import EmbeddedStore, now_ms, write_through
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.connection import StoreUnavailable


async def back_up(
    settings: Settings, directory: Path, clock: Callable[[], int] = now_ms
) -> Manifest:
    """Write a backup into a new directory, which appears when the backup is complete.

    Raises `CannotStart`.
    """
    if settings.redis is not None:
        raise CannotStart(
            "redis: Holdfast backs up its own stores only: use the backups of that server, such as"
            " BGSAVE. One that has all shards of the deployment can be restored"
        )
    try:
        with _appearing(directory) as unfinished:
            found = await _snapshots_of(settings, unfinished, clock)
            found.write(unfinished)
    except OSError as error:
        raise CannotStart(f"{error.filename or directory}: {error.strerror}") from error
    except TimeoutError as error:
        raise CannotStart("a store is busy, and takes no snapshot: try again later") from error
    return found


@contextmanager
def _appearing(directory: Path) -> Iterator[Path]:
    """Yield a directory that gets this name once everything in it is on the disk."""
    if directory.exists():
        raise CannotStart(f"{directory} exists: name a new directory")
    unfinished = directory.with_name(f"{directory.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700, parents=True)
    try:
        yield unfinished
        for file in unfinished.iterdir():
            file.chmod(0o600)
            write_through(file)
        write_through(unfinished)
        unfinished.rename(directory)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    write_through(directory.absolute().parent)


async def _snapshots_of(settings: Settings, directory: Path, clock: Callable[[], int]) -> Manifest:
    with ExitStack() as stack:
        keys = RedisKeys(settings.namespace)
        first = _store(settings, 0, stack)
        deployment, layout, count = await _look(first, keys)
        others = [_store(settings, shard, stack) for shard in range(1, count)]
        stores = await _snapshots([first, *others], directory, clock)
    return Manifest(deployment, settings.namespace, layout, stores)


def _store(settings: Settings, shard: int, stack: ExitStack) -> EmbeddedStore:
    data = placed(settings, 0, 1).data_of(shard)
    store = EmbeddedStore(data, RedisKeys(settings.namespace, shard).meta)
    stack.callback(store.close)
    return store


async def _look(store: EmbeddedStore, keys: RedisKeys) -> tuple[str, int, int]:
    """Return the name and the layout of the deployment, and how many shards it has."""
    try:
        found = await store.ask("HMGET", keys.meta, "deployment", "version", "shards")
    except StoreUnavailable as error:
        raise CannotStart(
            f"{error}. Is a server running there? Name its data directory with --data. A server "
            "that is stopped is backed up by a copy of its data directory"
        ) from error
    name, version, shards = found if isinstance(found, list) else (None, None, None)
    if name is None or version is None:
        raise CannotStart("the store is empty: nothing is there to be backed up")
    try:
        count = map_of(shards).count if shards else 1
    except MapUnreadable as error:
        raise CannotStart(f"the store of shard 0 cannot be used: {error}") from error
    return name.decode(), int(version), count


async def _snapshots(
    stores: Sequence[EmbeddedStore], directory: Path, clock: Callable[[], int]
) -> Sequence[StoreFile]:
    """Take a snapshot of each store, all at the same time."""
    names = [f"shard-{shard}.rdb" for shard in range(len(stores))]
    tasks = [
        asyncio.create_task(store.snapshot(directory / name, clock))
        for store, name in zip(stores, names, strict=True)
    ]
    try:
        taken = await asyncio.gather(*tasks)
    except StoreUnavailable as error:
        raise CannotStart(str(error)) from error
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return [
        StoreFile(shard, name, *each)
        for shard, (name, each) in enumerate(zip(names, taken, strict=True))
    ]
