"""A process with many servers in it, because starting a process for each takes a second.

Reads commands from standard input, one JSON object a line: `{"open": settings}` is answered with
the URL of a server that has them, or with the reason why there is none; `{"stop": url}` when that
server has stopped, or had before. When the input ends all servers stop.
"""

import asyncio
import json
import sys
import tempfile
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import uvloop
from pydantic import ValidationError

from holdfast.compose import CannotStart, serving
from holdfast.settings import Settings
from tests.conversations.runner.replay import OPERATOR


class Servers:
    """The servers by their URLs."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._servers: dict[str, AsyncExitStack] = {}
        self._numbers = count()

    async def obey(self, command: dict[str, Any]) -> str:
        if "stop" in command:
            server = self._servers.pop(command["stop"], None)
            if server is not None:
                await server.aclose()
            return "stopped"
        new = AsyncExitStack()
        own = {"port": 0, "data": self._directory()}
        try:
            url = await new.enter_async_context(serving(Settings(**{**own, **command["open"]})))
        except (CannotStart, ValidationError) as error:
            return " ".join(str(error).split())
        self._servers[url] = new
        return url

    def _directory(self) -> Path:
        """A new one, with a token that stories know."""
        directory = self._data / str(next(self._numbers))
        directory.mkdir(mode=0o700)
        token = directory / "admin-token"
        token.touch(mode=0o600)
        token.write_text(OPERATOR, "ascii")
        return directory

    async def close(self) -> None:
        await asyncio.gather(*(server.aclose() for server in self._servers.values()))


async def run(data: Path) -> None:
    loop, servers = asyncio.get_running_loop(), Servers(data)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        sys.stdout.write(await servers.obey(json.loads(line)) + "\n")
        sys.stdout.flush()
    await servers.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as home:
        uvloop.run(run(Path(home)))
