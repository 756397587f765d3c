"""A running Valkey: a child of this process, or one that an earlier process left behind."""

import asyncio
import logging
import os
import signal
from typing import Protocol

from app.store.home import Home

log = logging.getLogger(__name__)

# Time to write and sync what is in memory, and how often one is asked to.
_GOODBYE_S = 1.0
_REQUESTS = 10
# How often one looks whether somebody else's child is still there.
_LOOK_S = 0.1


class ValkeyProcess(Protocol):
    """What there is to know and do about a process."""

    pid: int

    @property
    def is_gone(self) -> bool: ...

    async def gone(self) -> str:
        """Wait for its end; how it ended."""

    def signal(self, number: int) -> None: ...


class Child:
    """A Valkey that this process started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    @property
    def is_gone(self) -> bool:
        return self._process.returncode is not None

    async def gone(self) -> str:
        code = await self._process.wait()
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def signal(self, number: int) -> None:
        if not self.is_gone:
            self._process.send_signal(number)


class Orphan:
    """A Valkey whose parent is gone; the lock that it holds tells of its life."""

    def __init__(self, pid: int, home: Home) -> None:
        self.pid = pid
        self._home = home

    @property
    def is_gone(self) -> bool:
        return not self._home.is_held()

    async def gone(self) -> str:
        while not self.is_gone:  # noqa: ASYNC110 - nobody tells about a stranger's end
            await asyncio.sleep(_LOOK_S)
        return "no longer there"

    def signal(self, number: int) -> None:
        if not self.is_gone:
            os.kill(self.pid, number)


async def stop(process: ValkeyProcess) -> None:
    """End it, after it has written what it holds; by force if it does not listen."""
    # One that writes its first file refuses to end before it is complete.
    for _ in range(_REQUESTS):
        if await _ends(process, signal.SIGTERM, _GOODBYE_S):
            return
    log.warning("the embedded store (process %d) does not end: it is killed", process.pid)
    await _ends(process, signal.SIGKILL, _GOODBYE_S)


async def _ends(process: ValkeyProcess, number: int, limit_s: float) -> bool:
    try:
        process.signal(number)
    except ProcessLookupError:
        pass
    try:
        async with asyncio.timeout(limit_s):
            await process.gone()
    except TimeoutError:
        return False
    return True
