"""Snapshots of embedded stores: each has the state of one moment, while its server goes on."""

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.resp import Word
from holdfast.store.links.url import StoreUrl
from holdfast.store.local.home import Home

_LOOK_S = 0.02
# How long a store may be busy with writing its files before it takes a snapshot.
_LIMIT_S = 120.0
_BLOCK = 1024 * 1024


class Snapshot(NamedTuple):
    """A file with the state of a store, and the moment at which it had that state, in ms."""

    time: int
    size: int
    sha256: str


class EmbeddedStore:
    """The running embedded store of a data directory.

    Args:
        key: A key of the store.
    """

    def __init__(self, data: Path, key: str) -> None:
        self._home = Home(data)
        self._reader = Reader(Primary(StoreUrl.of(self._home.url), key))

    async def ask(self, *command: Word) -> object:
        """Run a command. Raises `StoreUnavailable`."""
        return await self._reader.ask(*command)

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    async def snapshot(self, file: Path, clock: Callable[[], int]) -> Snapshot:
        """Write the state of this moment to a file. Raises `StoreUnavailable` or `OSError`.

        Args:
            clock: Returns the time in ms since 1970.
        """
        async with asyncio.timeout(_LIMIT_S):
            moment = await self._begin(clock)
            await self._until_written()
        return await asyncio.to_thread(self._take, moment, file)

    def _take(self, moment: int, file: Path) -> Snapshot:
        """Take the snapshot away: the store must not find it later."""
        written = self._home.snapshot
        try:
            # The copy may be on another disk.
            shutil.copyfile(written, file)
        except FileNotFoundError:
            why = f"the store wrote no snapshot: see {self._home.log}"
            raise StoreUnavailable(why) from None
        finally:
            written.unlink(missing_ok=True)
        return Snapshot(moment, file.stat().st_size, sha256_of(file))

    async def _until_written(self) -> None:
        while await self._is_writing():  # noqa: ASYNC110 - the store does not say when it is done
            await asyncio.sleep(_LOOK_S)

    async def _begin(self, clock: Callable[[], int]) -> int:
        while True:
            try:
                if not await self._is_writing():
                    self._home.drop_snapshot()
                    await self._reader.ask("BGSAVE")
                    return clock()
            except StoreUnavailable as error:
                # It refuses while it writes its append-only file.
                if "BGSAVE" not in str(error):
                    raise
            await asyncio.sleep(_LOOK_S)

    async def _is_writing(self) -> bool:
        info = await self._reader.ask("INFO", "persistence")
        return b"rdb_bgsave_in_progress:1" in info


def now_ms() -> int:
    """Return the time in ms since 1970."""
    return time.time_ns() // 1_000_000


def sha256_of(file: Path) -> str:
    """Return the digest of a file."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def write_through(file: Path) -> None:
    """Let the file, or the names in a directory, reach the disk."""
    opened = os.open(file, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
