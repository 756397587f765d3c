"""One of two supervised servers on one store: a machine of its own, with all its processes."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from bench.processes import reserved_port
from tests.chaos.processes import SERVER, START_LIMIT_S
from tests.chaos.proxy import Address
from tests.chaos.supervised import Supervised

LIMIT_S = START_LIMIT_S
UNDER_WAY = "a restart is under way"
STANDBY = "standby: another server has the store\n"
# What /readyz answers; 0 if nobody listens.
Answer = tuple[int, str]
NOBODY: Answer = (0, "")


class Twin(Supervised):
    """A supervisor with its server, or its workers, at a port that others know."""

    def __init__(
        self, home: Path, settings: Mapping[str, Any], program: Sequence[str] = SERVER
    ) -> None:
        self._reserved = reserved_port()
        port = self._reserved.__enter__()
        super().__init__(home, {"port": port, "standby": True, **settings}, program)
        self.address = Address("127.0.0.1", port)
        self.count = int(settings.get("workers", 1))
        self._becoming_ready: asyncio.Task[None] | None = None
        self._waited_before = 0

    def begin(self) -> None:
        """Start, but do not wait until it serves: another one may."""
        self._waited_before = self._waited
        self._becoming_ready = asyncio.create_task(super().start())

    async def pids(self) -> list[int]:
        """The processes of this machine, the supervisor first. Those of its servers are last."""
        await self.until(lambda: self._server is not None)
        found = [self.supervisor_pid]
        for pid in found:
            found += children(pid)
        return found

    async def restart(self, **more: Any) -> str:
        """Restart as soon as no other restart is going on."""
        ends = time.monotonic() + LIMIT_S
        while True:
            why = await super().restart(**more)
            if not why.startswith(UNDER_WAY) or time.monotonic() > ends:
                return why
            await asyncio.sleep(0.05)

    async def workers(self) -> list[int]:
        """The processes that serve or wait, children of importers."""
        return [each for importer in children(self.supervisor_pid) for each in children(importer)]

    async def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to everything at once, as when the machine stops."""
        for pid in await self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    async def kill_all(self) -> None:
        """The machine is gone."""
        # Nobody starts anything meanwhile.
        await self.signal_all(signal.SIGSTOP)
        await self.signal_all(signal.SIGKILL)
        await self.ended()

    def write_settings(self, old: str, new: str) -> None:
        """Change the settings file; a server that starts from now on reads it."""
        text = self._config.read_text()
        assert old in text
        self._config.write_text(text.replace(old, new))

    async def readiness(self) -> Answer:
        timeout = aiohttp.ClientTimeout(total=10.0)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as http,
                http.get(f"{self.url}/readyz") as response,
            ):
                return response.status, await response.text()
        except (aiohttp.ClientError, TimeoutError):
            return NOBODY

    async def waits(self) -> None:
        """Wait until it waits for another server, with all of its workers."""
        await self.answers(lambda found: found == (503, STANDBY))
        await self.until(lambda: self._waited >= self._waited_before + self.count)

    async def is_waiting(self) -> bool:
        """Return whether it waits for another server, with all of its workers."""
        have_begun = self._waited >= self._waited_before + self.count
        return have_begun and await self.readiness() == (503, STANDBY)

    @property
    def _waited(self) -> int:
        """How many workers have begun to wait."""
        return self.log().count("waiting for the lease of another server")

    async def serves(self, limit_s: float = LIMIT_S) -> float:
        """Wait until it serves; returns how long that takes."""
        began = time.monotonic()
        await self.answers(lambda found: found[0] == 200, limit_s)
        return time.monotonic() - began

    async def answers(self, is_so: Callable[[Answer], bool], limit_s: float = LIMIT_S) -> None:
        ends, found = time.monotonic() + limit_s, NOBODY
        while time.monotonic() < ends:
            found = await self.readiness()
            if is_so(found):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"it answers {found}\n{self.log()}")

    async def until(self, is_so: Callable[[], object], limit_s: float = LIMIT_S) -> None:
        ends = time.monotonic() + limit_s
        while not is_so():
            assert time.monotonic() < ends, f"it did not happen in time\n{self.log()}"
            await asyncio.sleep(0.05)

    def lines(self) -> list[str]:
        """The messages in the log."""
        found = [line for line in self.log().splitlines() if line.startswith("{")]
        return [str(orjson.loads(line)["message"]) for line in found]

    async def close(self) -> None:
        if self._server is not None and self.is_running:
            await self.signal_all(signal.SIGCONT)
        await super().close()
        if self._becoming_ready is not None:
            self._becoming_ready.cancel()
            await asyncio.gather(self._becoming_ready, return_exceptions=True)
        self._reserved.__exit__(None, None, None)


def children(pid: int) -> list[int]:
    """The children of a process."""
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
