"""A server and its store as processes that can be killed, frozen and started again."""

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from select import select
from typing import IO, Any
from urllib.parse import urlsplit

import aiohttp

from tests.chaos.proxy import Address
from tests.forking import ROOT, Forked, start
from tests.serving import STOP_LIMIT_S, as_toml, environment

# The module to run, and its arguments.
SERVER = ("holdfast",)
# Long, because these tests load the machine.
START_LIMIT_S = 150.0
_ANSWER_S = 30.0
_METRIC = re.compile(r"^holdfast_entries_(\S+) (\S+)$", re.MULTILINE)


class Processes:
    """One data directory, and the server that lives in it at times."""

    def __init__(
        self, home: Path, settings: Mapping[str, Any], program: Sequence[str] = SERVER
    ) -> None:
        self.data = home / "data"
        self._program = program
        self._config = home / "holdfast.toml"
        self._config.write_text(
            as_toml({"port": 0, "data": str(self.data), **settings}), encoding="utf-8"
        )
        self._log: IO[bytes] = (home / "log").open("a+b")
        self._server: Forked | None = None
        self.address = Address("127.0.0.1", 0)

    @property
    def url(self) -> str:
        return f"http://{self.address.host}:{self.address.port}"

    @property
    def is_running(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def signal_server(self, number: signal.Signals) -> None:
        """Send the server a signal, if it is running."""
        if self.is_running:
            assert self._server is not None
            self._server.send_signal(number)

    @property
    def is_frozen(self) -> bool:
        """Whether the server was stopped by a signal."""
        assert self._server is not None
        stat = Path(f"/proc/{self._server.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    @property
    def store_socket(self) -> Path | None:
        """Where the embedded store listens, if there is one."""
        return next(self.data.rglob("store.sock"), None)

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    async def start(self) -> None:
        """Start, or start again with the same data."""
        self._server = self._spawn()
        line = await asyncio.to_thread(self._ready_line, self._server)
        if "is ready" not in line:
            raise RuntimeError(f"the server did not start: {line!r}\n{self.log()}")
        url = urlsplit(line.split(" - ")[0].split()[-1])
        assert url.hostname is not None
        assert url.port is not None
        self.address = Address(url.hostname, url.port)

    async def kill(self) -> None:
        """Kill the server as the kernel does when memory runs out."""
        if self._server is not None:
            self._server.kill()
            await self._ended(self._server)

    async def stop(self) -> int:
        """Stop the server as an operator does; return its exit code."""
        assert self._server is not None
        self._server.terminate()
        return await self._ended(self._server)

    def freeze(self) -> None:
        self.signal_server(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal_server(signal.SIGCONT)

    def store_pid(self) -> int | None:
        """The process id of the embedded store, while it runs."""
        for path in self.data.rglob("*.pid"):
            try:
                pid = int(path.read_text().split()[0])
                os.kill(pid, 0)
            except (ValueError, IndexError, ProcessLookupError, FileNotFoundError):
                continue
            return pid
        return None

    def signal_store(self, number: signal.Signals) -> bool:
        """Send a signal to the store; return whether there was one."""
        pid = self.store_pid()
        if pid is None:
            return False
        os.kill(pid, number)
        return True

    async def close(self) -> None:
        """Kill all processes."""
        if self._server is not None:
            self.thaw()
            self.signal_store(signal.SIGCONT)
            await self.stop()
        # A server that was killed leaves its store behind.
        if self.signal_store(signal.SIGKILL):
            await asyncio.sleep(0.05)
        self._log.close()

    def _spawn(self) -> Forked:
        # Only the sources can be changed.
        variables = environment() if self._program == SERVER else environment(str(ROOT))
        return start(
            *(*self._program, "serve", "--config", str(self._config)),
            environment=variables,
            cwd=ROOT,
            errors=self._log,
        )

    async def is_ready(self) -> bool:
        """Whether the server says that it is ready."""
        try:
            return await self._get("/readyz") is not None
        except (aiohttp.ClientError, TimeoutError, ConnectionError):
            return False

    async def counters(self) -> dict[str, int]:
        """The server's counts of entries at one moment."""
        text = await self._get("/metrics") or ""
        found = {name: int(float(value)) for name, value in _METRIC.findall(text)}
        return {
            "accepted": found["accepted_total"],
            "restored": found["restored_total"],
            "waiting": found["waiting"],
            "in_flight": found["in_flight"],
            **{
                name.partition('"')[2].rstrip('"}'): value
                for name, value in found.items()
                if name.startswith("settled_total{")
            },
        }

    async def _get(self, path: str) -> str | None:
        timeout = aiohttp.ClientTimeout(total=_ANSWER_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.get(self.url + path) as response,
        ):
            return await response.text() if response.status == 200 else None

    async def _ended(self, server: Forked) -> int:
        try:
            code = await asyncio.to_thread(server.wait, STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            server.kill()
            code = await asyncio.to_thread(server.wait)
        if server.stdout is not None:
            server.stdout.close()
        return code

    @staticmethod
    def _ready_line(server: Forked) -> str:
        output = server.stdout
        assert output is not None
        deadline_s = time.monotonic() + START_LIMIT_S
        while (left_s := deadline_s - time.monotonic()) > 0:
            # Whoever ends the server closes this meanwhile, which a longer `select` may not notice.
            is_readable, _, _ = select([output], [], [], min(left_s, 1.0))
            if is_readable:
                line = output.readline().decode()
                if not line or "is ready" in line:
                    return line
        return ""
