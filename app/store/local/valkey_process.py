"""A running Valkey: a child of this process, or an orphan of an earlier one."""

import asyncio
import logging
import os
import signal
from typing import Protocol

from holdfast.store.local.home import Home

log = logging.getLogger(__name__)

# How long it may write and sync its data, and how often it is asked to stop.
_GOODBYE_S = 1.0
_REQUESTS = 10
# How long a killed process may take to disappear: it may have gigabytes to give back.
_KILL_S = 10.0
# How often to check whether an orphan is still alive.
_LOOK_S = 0.1


class ValkeyProcess(Protocol):
    """The facts about a process, and the signals to it."""

    pid: int

    @property
    def is_gone(self) -> bool: ...

    async def gone(self) -> str:
        """Wait for its end. Returns how it ended."""

    def signal(self, number: int) -> None: ...


class ChildProcess:
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
            # asyncio's method first looks whether it has ended, and keeps from `gone` how.
            os.kill(self.pid, number)


class OrphanProcess:
    """A Valkey whose parent has ended. Its lock shows whether it is alive."""

    def __init__(self, pid: int, home: Home) -> None:
        self.pid = pid
        self._home = home

    @property
    def is_gone(self) -> bool:
        return not self._home.is_held()

    async def gone(self) -> str:
        while not self.is_gone:  # noqa: ASYNC110 - no signal announces an orphan's end
            await asyncio.sleep(_LOOK_S)
        return "no longer running"

    def signal(self, number: int) -> None:
        if not self.is_gone:
            os.kill(self.pid, number)


async def stop(process: ValkeyProcess) -> None:
    """Stop the process after it has written its data. Kills it if it does not respond."""
    # Valkey refuses to stop before its first append-only file is complete.
    for _ in range(_REQUESTS):
        if await _ends(process, signal.SIGTERM, _GOODBYE_S):
            return
    log.warning("the embedded store (process %d) does not stop: it is killed", process.pid)
    await _ends(process, signal.SIGKILL, _KILL_S)


async def _ends(process: ValkeyProcess, number: int, within_s: float) -> bool:
    try:
        process.signal(number)
    except ProcessLookupError:
        pass
    try:
        async with asyncio.timeout(within_s):
            await process.gone()
    except TimeoutError:
        return False
    return True
